import type { ReactElement } from 'react';
import type { Answer } from '../../api/client.ts';
import { CopyButton } from '../../ui/copy.tsx';
import { Icon } from '../../ui/icon.tsx';
import { Preformatted } from '../../ui/preformatted.tsx';
import { Ago } from '../../ui/time.tsx';
import { type YamlLine, yamlLines, yamlText } from '../../ui/yaml-text.ts';

export type Manifest = Answer<'GET /manifests/{id}'>;

/** Who owns a field, in words. */
export const managersIn = (managers: readonly string[]): string => managers.join(', ');

/** All who own something, each once. */
export function managersOf({ owners }: Manifest): string[] {
  return [...new Set(owners.flatMap(({ managers }) => managers))];
}

/** A resource as YAML, with the owner beside each field that is not the API's, and its conditions. */
export function ManifestView({ data }: { data: Manifest }): ReactElement {
  const json = JSON.stringify(data.manifest);
  const managers = managersOf(data);
  const ownersAt = new Map(data.owners.map((owner) => [owner.pointer, owner.managers]));
  return (
    <>
      {managers.length === 0 ? (
        <p className="muted">No field of it is owned by another manager: all of it can be changed here.</p>
      ) : (
        <div className="note">
          <Icon name="git" />
          <p>
            <strong>{managersIn(managers)}</strong> {data.isLocked ? 'declares all of it.' : 'owns the fields that are marked.'} Change them
            there: here they are refused.
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
            // biome-ignore lint/suspicious/noArrayIndexKey: a line is its place in the text
            <Line key={i} line={line} managers={all[i - 1]?.pointer === line.pointer ? undefined : ownersAt.get(line.pointer)} />
          ))}
        </Preformatted>
      </div>
      <Conditions conditions={data.conditions} />
    </>
  );
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
    <section className="panel" aria-label="Conditions">
      <header className="panel-head">
        <h2>Conditions</h2>
      </header>
      <div className="table-wrap">
        <table className="table">
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
                <td>{status}</td>
                <td>
                  <code>{reason}</code>
                </td>
                <td className="grow">{message}</td>
                <td className="num">
                  <Ago at={lastTransitionTime} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
