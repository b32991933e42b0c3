import { type FormEvent, type ReactElement, useId, useState } from 'react';
import { Refusal } from '../app/resource-acts.tsx';
import { useWrite } from '../app/use-api.ts';
import { CopyButton } from '../ui/copy.tsx';
import { jsonOf, type KindOfLab, type Stored } from './lab-kinds.ts';
import { objectNameOf, yamlOf } from './lab-yaml.ts';

export interface LabSaveProps {
  kind: KindOfLab;
  stored: Stored | null;
  /** Null: the text says nothing that could be saved. */
  fields: [field: string, json: string][] | null;
  isChanged: boolean;
  onSaved: () => void;
  onCreated: (id: string) => void;
}

/** Writes the definition to the object it came from or to a new one, or gives its manifest. */
export function LabSave({ kind, stored, fields, isChanged, onSaved, onCreated }: LabSaveProps): ReactElement {
  const update = useWrite(kind.update);
  const create = useWrite(kind.create);
  const [name, setName] = useState('');
  const field = useId();
  const noun = kind.word.toLowerCase();
  const yaml = (): string => {
    const shown = name.trim() === '' ? (stored?.name ?? `Lab ${noun}`) : name.trim();
    const isNew = stored === null || name.trim() !== '';
    return yamlOf({
      kind: kind.resource,
      name: isNew ? objectNameOf(shown, `lab-${noun}`) : stored.slug,
      spec: [['name', JSON.stringify(shown)], ...(isNew ? [] : stored.others), ...(fields ?? [])],
    });
  };
  const save = (): void => {
    if (stored !== null && fields !== null) update.mutate({ path: { id: stored.id }, bodyText: jsonOf(fields) }, { onSuccess: onSaved });
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
        {stored === null ? null : (
          <button type="button" className="btn" disabled={fields === null || !isChanged || update.isPending} onClick={save}>
            Save {stored.name}
          </button>
        )}
        <label htmlFor={field}>Name</label>
        <span>
          <input className="input" id={field} maxLength={200} value={name} onChange={({ target }) => setName(target.value)} />
        </span>
        <button type="submit" className="btn" disabled={fields === null || name.trim() === '' || create.isPending}>
          Save as new
        </button>
        {fields === null ? null : <CopyButton text={yaml} label="Copy as YAML" />}
      </div>
      {update.isSuccess && !isChanged ? (
        <p className="small muted" role="status">
          Saved.
        </p>
      ) : null}
      <Refusal error={update.error ?? create.error} />
    </form>
  );
}
