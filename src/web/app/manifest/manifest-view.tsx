import type { ReactElement } from 'react';
import type { Answer } from '../../api/client.ts';
import { CopyButton } from '../../ui/copy.tsx';
import { count } from '../../ui/format.ts';
import { Icon } from '../../ui/icon.tsx';
import { Failure } from '../../ui/notices.tsx';
import { Panel } from '../../ui/panel.tsx';
import { Preformatted } from '../../ui/preformatted.tsx';
import { Ago } from '../../ui/time.tsx';
import { type YamlLine, yamlLines, yamlText } from '../../ui/yaml-text.ts';
import { useRead } from '../use-api.ts';
import type { Exact } from './exact.ts';

export type Manifest = Answer<'GET /manifests/{id}'>;

/** Who owns a field, in words. */
export const managersIn = (managers: readonly string[]): string => managers.join(', ');

/** Who declares a resource. A manifest whose fields nobody owns declares it all the same. */
export const declarerOf = (managers: readonly string[]): string => (managers.length === 0 ? 'A manifest' : managersIn(managers));

/** All who own something, each once. */
export function managersOf({ owners }: Manifest): string[] {
  return [...new Set(owners.flatMap(({ managers }) => managers))];
}

/** A resource as YAML, with the owner beside each field that is not the API's, and its conditions. */
export function ManifestView({ exact: { answer: data, json } }: { exact: Exact<'GET /manifests/{id}'> }): ReactElement {
  const managers = managersOf(data);
  const ownersAt = new Map(data.owners.map((owner) => [owner.pointer, owner.managers]));
  return (
    <>
      {managers.length === 0 && !data.isLocked ? (
        <p className="muted">No field of it is owned by another manager: all of it can be changed here.</p>
      ) : (
        <div className="note">
          <Icon name="git" />
          <p>
            <strong>{declarerOf(managers)}</strong>{' '}
            {data.isLocked
              ? 'declares all of it. Change it there: here it is refused.'
              : 'owns the fields that are marked. Change them there: here they are refused.'}
          </p>
        </div>
      )}
      <div className="code-block">
        <header>
          YAML
          <span className="spacer" />
          <CopyButton text={() => yamlText(json)} label="Copy YAML" />
        </header>
        <Preformatted label="Manifest">
          {yamlLines(json).map((line, i, all) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a line is its index in the text
            <Line key={i} line={line} managers={all[i - 1]?.pointer === line.pointer ? undefined : ownersAt.get(line.pointer)} />
          ))}
        </Preformatted>
      </div>
      {hasMasked(data.manifest.spec) ? (
        <p className="small muted">Values with • are masked: they are not the stored ones. Do not apply them.</p>
      ) : null}
      <Conditions conditions={data.conditions} />
      <ObjectEvents id={data.id} />
    </>
  );
}

/** Whether a header has a credential that the API masks. */
function hasMasked(value: unknown, name = ''): boolean {
  if (typeof value === 'string') return name === 'value' && value.startsWith('•');
  return typeof value === 'object' && value !== null && Object.entries(value).some(([key, inner]) => hasMasked(inner, key));
}

function Line({ line, managers }: { line: YamlLine; managers: readonly string[] | undefined }): ReactElement {
  return (
    <>
      {line.text}
      {managers === undefined ? null : (
        <>
          {'  '}
          <span className="owner">
            <Icon name="git" />
            <span>
              <span className="vh">owned by </span>
              {managersIn(managers)}
            </span>
          </span>
        </>
      )}
      {'\n'}
    </>
  );
}

function Conditions({ conditions }: { conditions: Manifest['conditions'] }): ReactElement {
  if (conditions.length === 0) return <p className="muted">The controller has written no conditions yet.</p>;
  return (
    <Panel title="Conditions" isRegion>
      <div className="table-wrap">
        <table className="table is-stack">
          <thead>
            <tr>
              <th scope="col">Condition</th>
              <th scope="col">Status</th>
              <th scope="col">Reason</th>
              <th scope="col">Message</th>
              <th scope="col" className="num">
                Since
              </th>
            </tr>
          </thead>
          <tbody>
            {conditions.map(({ type, status, reason, message, lastTransitionTime }) => (
              <tr key={type}>
                <td>{type}</td>
                <td data-label="Status">{status}</td>
                <td data-label="Reason">
                  <code>{reason}</code>
                </td>
                <td className="grow" data-label="Message">
                  {message === '' ? <span className="dim">–</span> : message}
                </td>
                <td className="num" data-label="Since">
                  <Ago at={lastTransitionTime} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}

/** What has happened to it lately, where the cluster keeps that. */
function ObjectEvents({ id }: { id: string }): ReactElement | null {
  const { data, error } = useRead('GET /manifests/{id}/events', { path: { id } }, { everyMs: 30_000 });
  if (data === undefined) return error === null ? null : <Failure message={error.message} requestId={error.requestId} />;
  if (!data.isKept) return null;
  if (data.data.length === 0) return <p className="muted">The cluster has no Event of it. It keeps them for an hour, as a rule.</p>;
  return (
    <Panel title="Events" hint="newest first" isRegion>
      <div className="table-wrap">
        <table className="table is-stack">
          <thead>
            <tr>
              <th scope="col">Type</th>
              <th scope="col">Reason</th>
              <th scope="col">Message</th>
              <th scope="col" className="num">
                Times
              </th>
              <th scope="col" className="p2">
                From
              </th>
              <th scope="col" className="num">
                Last
              </th>
            </tr>
          </thead>
          <tbody>
            {data.data.map(({ type, reason, message, count: times, lastAt, source }) => (
              <tr key={`${source} ${type} ${reason} ${message} ${lastAt}`}>
                <td>{type}</td>
                <td data-label="Reason">
                  <code>{reason}</code>
                </td>
                <td className="grow" data-label="Message">
                  {message}
                </td>
                <td className="num" data-label="Times">
                  {count(times)}
                </td>
                <td className="p2 muted">{source}</td>
                <td className="num" data-label="Last">
                  {lastAt === null ? '–' : <Ago at={lastAt} />}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}
