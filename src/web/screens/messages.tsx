import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { type ReactElement, useCallback } from 'react';
import type { Input } from '../api/client.ts';
import { AsCode } from '../app/as-code.tsx';
import { sendEventCommand } from '../app/create-command.ts';
import { severalOf } from '../app/list-filters.ts';
import { ListScreen } from '../app/list-screen.tsx';
import { filteredName } from '../app/names.tsx';
import { Page } from '../app/page.tsx';
import { type RowOf, useCursorList, useOrganization } from '../app/use-api.ts';
import type { FilterField } from '../ui/filters.tsx';
import { shortId } from '../ui/format.ts';
import { Empty } from '../ui/notices.tsx';
import type { Column } from '../ui/rows.tsx';
import { Code } from '../ui/state.tsx';
import { Clock } from '../ui/time.tsx';
import { MessageActs } from './bulk-acts.tsx';
import { CancelMessages } from './cancel.tsx';
import { MessageDrawer } from './message-drawer.tsx';
import { MessageState, messageWord } from './message-state.tsx';
import { SendEvent } from './send-event.tsx';

type Message = RowOf<'GET /outbound-messages'>;

const statuses = ['pending', 'processing', 'success', 'failed', 'exhausted', 'dlq'];
export const messageFields: readonly FilterField[] = [
  { name: 'status', word: 'status', isMany: true, choices: statuses.map((value) => ({ value, word: messageWord(value) })) },
  { name: 'applicationId', word: 'application', isMany: true, hint: 'Its id.', show: filteredName },
  { name: 'endpointId', word: 'endpoint', isMany: true, hint: 'Its id.', show: filteredName },
  { name: 'eventType', word: 'event type', isMany: true, hint: 'Its name.' },
  { name: 'errorType', word: 'error', isMany: true, hint: 'Such as http_error, timeout, dns, tls or network.' },
  { name: 'responseStatus', word: 'code', isMany: true, hint: 'Such as 503, or a class such as 5xx.' },
  { name: 'where', word: 'where', hint: 'A CEL expression, such as event.data.total > 100.' },
  { name: 'from', word: 'from', hint: 'A day or a time, such as 2026-01-31T12:00:00Z.' },
  { name: 'to', word: 'to', hint: 'A day or a time.' },
  { name: 'failedFrom', word: 'failed from', hint: 'A day or a time.' },
  { name: 'failedTo', word: 'failed to', hint: 'A day or a time.' },
];
export const messageColumns: readonly Column<Message>[] = [
  { title: 'Created', className: 'mono', cell: ({ createdAt }) => <Clock at={createdAt} /> },
  { title: 'State', cell: ({ status }) => <MessageState status={status} /> },
  { title: 'Type', cell: ({ eventType }) => eventType },
  { title: 'Message', className: 'mono p2', cell: ({ id }) => <MessageLink id={id} /> },
  { title: 'Application', className: 'p3 muted', cell: ({ applicationName, applicationId }) => applicationName ?? shortId(applicationId) },
  { title: 'Endpoint', className: 'p2 grow muted', cell: ({ endpointUrl, endpointId }) => endpointUrl ?? shortId(endpointId) },
  { title: 'Code', className: 'num p2', cell: ({ lastResponseStatus }) => <Code status={lastResponseStatus} /> },
];
const keyOf = ({ id }: Message): string => id;

/** What was sent to customers, and what is its status? */
export function Messages(): ReactElement {
  const org = useOrganization();
  const navigate = useNavigate();
  const search = useSearch({ from: '/o/$org/messages' });
  const { at: _at, status, errorType, responseStatus, ...others } = search;
  const filter = { ...others, errorType: errorType?.split(','), responseStatus: responseStatus?.split(',') };
  const query: Input<'GET /outbound-messages'>['query'] = { ...filter, status: status?.split(',') as Message['status'][] | undefined };
  const list = useCursorList('GET /outbound-messages', query);
  const open = useCallback((id: string) => void navigate({ to: '/o/$org/messages/$id', params: { org, id } }), [navigate, org]);
  return (
    <Page
      title="Messages"
      actions={
        <>
          <CancelMessages
            filter={severalOf(filter, 'eventType', 'applicationId', 'endpointId')}
            status={status?.split(',')}
            isOffered={list.rows.length > 0}
          />
          <AsCode name="GET /outbound-messages" input={{ query }} />
          <SendEvent />
        </>
      }
      isFull
    >
      <ListScreen
        what="messages"
        list={list}
        columns={messageColumns}
        keyOf={keyOf}
        fields={messageFields}
        search={search}
        open={open}
        counts="messages"
        views="messages"
        drawer={(id, close) => <MessageDrawer key={id} id={id} onClose={close} />}
        acts={(rows, clear) => <MessageActs rows={rows} clear={clear} />}
        empty={
          <Empty title="No message yet" command={sendEventCommand(org)}>
            <p>A message is made when an event is sent to the endpoints of customers that subscribe to its type.</p>
          </Empty>
        }
      />
    </Page>
  );
}

function MessageLink({ id }: { id: string }): ReactElement {
  const org = useOrganization();
  return (
    <Link to="/o/$org/messages/$id" params={{ org, id }} title={id}>
      {shortId(id)}
    </Link>
  );
}
