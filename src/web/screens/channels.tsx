import { useSearch } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import type { Answer } from '../api/client.ts';
import { AsCode } from '../app/as-code.tsx';
import { createCommand } from '../app/create-command.ts';
import { DeleteAct } from '../app/delete-act.tsx';
import { ListScreen } from '../app/list-screen.tsx';
import { ManifestLink } from '../app/manifest/manifest-link.tsx';
import { Page } from '../app/page.tsx';
import { Refusal, SwitchButton, switchWrite } from '../app/resource-acts.tsx';
import { labelOf } from '../app/resource-form/form-body.ts';
import { EditLink, NewLink } from '../app/resource-form/form-links.tsx';
import { useOrganization, usePages, useRead, useWrite } from '../app/use-api.ts';
import { Drawer } from '../ui/drawer.tsx';
import { type FilterField, yesOrNo } from '../ui/filters.tsx';
import { count, duration } from '../ui/format.ts';
import { Empty, Failure, Loading } from '../ui/notices.tsx';
import type { Column } from '../ui/rows.tsx';
import { Code, State } from '../ui/state.tsx';
import { Ago } from '../ui/time.tsx';

type Channel = Answer<'GET /notification-channels'>['data'][number];

const typeWords: Record<Channel['type'], string> = {
  slack: 'Slack',
  teams: 'Teams',
  discord: 'Discord',
  pagerduty: 'PagerDuty',
  email: 'E-mail',
  webhook: 'Webhook',
};
const types = Object.keys(typeWords) as Channel['type'][];
const fields: readonly FilterField[] = [
  { name: 'type', word: 'type', choices: types.map((value) => ({ value, word: typeWords[value] })) },
  { name: 'enabled', word: 'enabled', choices: yesOrNo },
];
const columns: readonly Column<Channel>[] = [
  { title: 'Channel', className: 'grow', cell: ({ name }) => name },
  { title: 'State', cell: ({ enabled }) => <State state={enabled ? 'ready' : 'disabled'} /> },
  { title: 'Type', cell: ({ type }) => typeWords[type] },
  {
    title: 'Last notice',
    className: 'p2',
    cell: ({ lastNotifiedAt }) => (lastNotifiedAt === null ? <span className="dim">never</span> : <Ago at={lastNotifiedAt} />),
  },
];
const keyOf = ({ id }: Channel): string => id;
const rowsOf = ({ data }: Answer<'GET /notification-channels'>): Channel[] => data;

/** Who gets alerts, and do they arrive? */
export function Channels(): ReactElement {
  const org = useOrganization();
  const search = useSearch({ from: '/o/$org/channels' });
  const query = {
    type: types.find((each) => each === search.type),
    enabled: search.enabled === undefined ? undefined : search.enabled === 'true',
  };
  return (
    <Page
      title="Channels"
      actions={
        <>
          <AsCode name="GET /notification-channels" input={{ query }} />
          <NewLink family="channels" noun="channel" />
        </>
      }
      isFull
    >
      <ListScreen
        what="channels"
        list={usePages('GET /notification-channels', query, rowsOf)}
        columns={columns}
        keyOf={keyOf}
        fields={fields}
        search={search}
        drawer={(id, close) => <ChannelDrawer key={id} id={id} onClose={close} />}
        empty={
          <Empty
            title="No channel yet"
            command={createCommand(
              org,
              '/notification-channels',
              '{"name": "on call", "type": "email", "config": {"addresses": ["you@example.com"]}}',
            )}
          >
            <p>A channel reports failures and recoveries to people: Slack, Teams, Discord, PagerDuty, e-mail or a webhook.</p>
          </Empty>
        }
      />
    </Page>
  );
}

function ChannelDrawer({ id, onClose }: { id: string; onClose: () => void }): ReactElement {
  const input = { path: { id } };
  const { data: channel, error, refetch } = useRead('GET /notification-channels/{id}', input, { everyMs: 10_000 });
  const change = useWrite('PATCH /notification-channels/{id}');
  const test = useWrite('POST /notification-channels/{id}/test');
  if (channel === undefined)
    return (
      <Drawer label="Selected channel" head={<span className="spacer" />} onClose={onClose}>
        {error === null ? <Loading what="the channel" /> : <Failure message={error.message} retry={() => void refetch()} />}
      </Drawer>
    );
  const { name, enabled, type, config } = channel;
  return (
    <Drawer
      label="Selected channel"
      onClose={onClose}
      head={
        <>
          <State state={enabled ? 'ready' : 'disabled'} isPill />
          <strong>{name}</strong>
          <span className="spacer" />
        </>
      }
      foot={
        <>
          <AsCode name="GET /notification-channels/{id}" input={input} />
          <ManifestLink id={id} />
          <EditLink family="channels" id={id} />
          <SwitchButton
            isOn={enabled}
            write={switchWrite({ name, isOn: enabled, change, inputOf: (isOn) => ({ ...input, body: { enabled: isOn } }) })}
          />
          <DeleteAct family="notification-channels" id={id} noun="channel" name={name} updatedAt={channel.updatedAt} onDeleted={onClose}>
            <p>Routes that name it lose it, and report no failures here any more.</p>
          </DeleteAct>
          <button type="button" className="btn is-primary" disabled={test.isPending} onClick={() => test.mutate(input)}>
            {test.isPending ? 'Sending…' : 'Send a test'}
          </button>
        </>
      }
    >
      <Refusal error={change.error ?? test.error} />
      {test.data === undefined ? null : (
        <section aria-live="polite">
          <header>
            <h2>This test</h2>
          </header>
          <p className="row">
            <State state={test.data.success ? 'delivered' : 'failed'} />
            {test.data.detail === undefined ? '' : duration(test.data.detail.phases.totalMs)}
          </p>
          <p className="small">{test.data.message}</p>
        </section>
      )}
      <section>
        <dl className="kv is-tight">
          <dt>Type</dt>
          <dd>{typeWords[type]}</dd>
          {Object.entries(config).map(([key, value]) => (
            <Setting key={key} name={key} value={value} />
          ))}
          <dt>Id</dt>
          <dd className="id">{id}</dd>
        </dl>
      </section>
      <Sent id={id} />
    </Drawer>
  );
}

function Sent({ id }: { id: string }): ReactElement {
  const { data, error } = useRead('GET /notification-channels/{id}/alerts', { path: { id } }, { everyMs: 10_000 });
  return (
    <section aria-label="What was sent">
      <header>
        <h2>Sent</h2>
      </header>
      {error === null ? null : <Failure message={error.message} />}
      {data === undefined && error === null ? <Loading what="what was sent" /> : null}
      {data?.data.length === 0 ? <p className="small muted">Nothing was sent to this channel yet.</p> : null}
      <dl className="kv is-tight">
        {data?.data.map((alert) => (
          <Alert key={alert.id} alert={alert} />
        ))}
      </dl>
    </section>
  );
}

const alertWords = {
  'delivery.failed': 'Failures',
  'delivery.succeeded': 'Successes',
  'route.recovered': 'Recovery',
  'circuit.opened': 'Circuit opened',
  'circuit.closed': 'Circuit closed',
} as const;

function Alert({ alert }: { alert: Answer<'GET /notification-channels/{id}/alerts'>['data'][number] }): ReactElement {
  const { type, isTest, route, destination, count: ofHowMany, status, attempts, responseStatus, errorMessage } = alert;
  return (
    <>
      <dt>
        <Ago at={alert.lastAttemptAt} />
      </dt>
      <dd>
        <State state={status} /> {responseStatus === null ? null : <Code status={responseStatus} />}{' '}
        {isTest ? 'Test' : `${alertWords[type]}${ofHowMany === 1 ? '' : ` (${count(ofHowMany)})`}: ${route?.name} to ${destination?.name}`}
        {attempts === 1 ? null : <span className="muted">, attempt {count(attempts)}</span>}
        {errorMessage === null ? null : <span className="sub">: {errorMessage}</span>}
      </dd>
    </>
  );
}

function Setting({ name, value }: { name: string; value: unknown }): ReactElement | null {
  const text = typeof value === 'string' ? value : Array.isArray(value) ? value.join(', ') : JSON.stringify(value);
  if (value === null || text === '{}') return null;
  return (
    <>
      <dt>{labelOf(name)}</dt>
      <dd>{text}</dd>
    </>
  );
}
