import type { ReactElement } from 'react';
import type { Answer } from '../../api/client.ts';
import { CopyButton } from '../../ui/copy.tsx';
import { Preformatted } from '../../ui/preformatted.tsx';
import { yamlText } from '../../ui/yaml-text.ts';

/** A change as a merge patch, to be put into Git. */
export function GitPatch({ data: { patch, secrets } }: { data: Answer<'POST /manifests/{id}/patch'> }): ReactElement {
  const text = yamlText(JSON.stringify(patch));
  return (
    <section aria-label="Patch" aria-live="polite" className="stack">
      <div className="code-block">
        <header>
          Merge patch for Git
          <span className="spacer" />
          <CopyButton text={text} label="Copy patch" />
        </header>
        <Preformatted label="Patch">{text}</Preformatted>
      </div>
      <p className="small muted">Nothing was saved. A field that is null is to be removed from the manifest.</p>
      {secrets.map(({ name, keys }) => (
        <p className="small" key={name}>
          The patch holds no credentials. Make the Secret <code>{name}</code> with {keys.length === 1 ? 'the key' : 'the keys'}{' '}
          <code>{keys.join(', ')}</code>.
        </p>
      ))}
    </section>
  );
}
