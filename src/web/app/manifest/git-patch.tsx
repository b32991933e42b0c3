import type { ReactElement } from 'react';
import { CopyButton } from '../../ui/copy.tsx';
import { Preformatted } from '../../ui/preformatted.tsx';
import { yamlText } from '../../ui/yaml-text.ts';
import type { Exact } from './exact.ts';

/** A change as a merge patch, to be put into Git. */
export function GitPatch({ exact }: { exact: Exact<'POST /manifests/{id}/patch'> }): ReactElement {
  const { patch, secrets } = exact.answer;
  const text = yamlText(exact.json);
  return (
    <section aria-label="Patch" aria-live="polite" className="stack">
      {Object.keys(patch.spec).length === 0 ? (
        <p className="note">Nothing differs.</p>
      ) : (
        <>
          <div className="code-block">
            <header>
              Merge patch for Git
              <span className="spacer" />
              <CopyButton text={text} label="Copy patch" />
            </header>
            <Preformatted label="Patch">{text}</Preformatted>
          </div>
          <p className="small muted">
            Nothing was saved.{hasNull(patch.spec) ? ' A field that is null is to be removed from the manifest.' : ''}
          </p>
        </>
      )}
      {secrets.map(({ name, keys }) => (
        <p className="small" key={name}>
          The patch holds no credentials. Make the Secret <code>{name}</code> with {keys.length === 1 ? 'the key' : 'the keys'}{' '}
          <code>{keys.join(', ')}</code>.
        </p>
      ))}
    </section>
  );
}

/** Whether a merge patch removes something; null in a list is a value. */
function hasNull(value: unknown): boolean {
  if (typeof value !== 'object' || Array.isArray(value)) return false;
  return value === null || Object.values(value).some(hasNull);
}
