import type { UseMutationResult } from '@tanstack/react-query';
import { type FormEvent, type ReactElement, useId, useState } from 'react';
import type { Answer, ApiError, Input } from '../api/client.ts';
import { Refusal } from '../app/resource-acts.tsx';
import { useWrite } from '../app/use-api.ts';
import { CopyButton } from '../ui/copy.tsx';
import { type Edited, jsonOf, type KindOfLab, manifestOf } from './lab-kinds.ts';
import { yamlOf } from './lab-yaml.ts';

export interface LabSaveProps extends Omit<Edited, 'newName'> {
  kind: KindOfLab;
  /** Writes a new one; the text stands still meanwhile. */
  create: UseMutationResult<Answer<KindOfLab['create']>, ApiError, Input<KindOfLab['create']>>;
  onSaved: () => void;
  onCreated: (id: string) => void;
}

/** Writes the definition to the object it came from or to a new one, or gives its manifest. */
export function LabSave({ kind, create, onSaved, onCreated, ...edited }: LabSaveProps): ReactElement {
  const { stored, fields, isChanged } = edited;
  const update = useWrite(kind.update);
  const [name, setName] = useState('');
  const field = useId();
  const manifest = manifestOf(kind, { ...edited, newName: name.trim() });
  const save = (): void => {
    if (stored === null || fields === null) return;
    // Heard of after the screen is left, too. What is refused is shown below.
    update.mutateAsync({ path: { id: stored.id }, bodyText: jsonOf(fields) }).then(onSaved, () => undefined);
  };
  const saveAsNew = (event: FormEvent): void => {
    event.preventDefault();
    if (fields === null) return;
    const bodyText = jsonOf([['name', JSON.stringify(name.trim())], ...fields]);
    create.mutate({ bodyText }, { onSuccess: ({ id }) => onCreated(id) });
  };
  return (
    <form className="stack" onSubmit={saveAsNew}>
      <div className="row">
        {stored === null || stored.sharedFrom !== null ? null : (
          <button type="button" className="btn" disabled={fields === null || !isChanged || update.isPending} onClick={save}>
            Save {stored.name}
          </button>
        )}
        <span className="row">
          <label htmlFor={field}>Name</label>
          <span>
            <input className="input" id={field} maxLength={200} value={name} onChange={({ target }) => setName(target.value)} />
          </span>
        </span>
        <button type="submit" className="btn" disabled={fields === null || name.trim() === '' || create.isPending}>
          Save as new
        </button>
        {manifest === null ? null : <CopyButton text={() => yamlOf(manifest)} label="Copy as YAML" />}
      </div>
      {stored === null || stored.sharedFrom === null ? null : (
        <p className="small muted">{stored.sharedFrom.organization} shares it. Changed, it can be saved as a new one.</p>
      )}
      {update.isSuccess && !isChanged ? (
        <p className="small muted" role="status">
          Saved.
        </p>
      ) : null}
      <Refusal error={update.error ?? create.error} />
    </form>
  );
}
