import { type UseMutationResult, useMutation, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, type ReactElement, useId, useState } from 'react';
import { type Answer, type ApiError, type Input, readBytes } from '../api/client.ts';
import { Refusal } from '../app/resource-acts.tsx';
import { bytesKey, useOrganization } from '../app/use-api.ts';
import { CopyButton } from '../ui/copy.tsx';
import { Icon } from '../ui/icon.tsx';
import { laidOut } from '../ui/json-text.ts';
import { type DraftState, isSameDraft } from './lab-draft.ts';
import { type Draft, type Edited, jsonOf, type KindOfLab, kinds, type LabKind, manifestOf, storedIn } from './lab-kinds.ts';
import { LinesBeside } from './lab-results.tsx';
import { yamlOf } from './lab-yaml.ts';

export interface LabSaveProps extends Omit<Edited, 'newName' | 'isChanged'> {
  kind: LabKind;
  /** Id or slug that was opened; undefined: a new one. */
  id: string | undefined;
  draft: DraftState;
  /** Writes a new one; the text stands still meanwhile. */
  create: UseMutationResult<Answer<KindOfLab['create']>, ApiError, Input<KindOfLab['create']>>;
  onCreated: (id: string) => void;
}

/** Writes the definition to the object it came from or to a new one, or gives its manifest. */
export function LabSave({ kind, id, draft, create, onCreated, stored, fields }: LabSaveProps): ReactElement {
  const { isChanged, isOutdated } = draft;
  const update = useUpdate({ kind, id, draft, fields });
  const [name, setName] = useState('');
  const field = useId();
  const manifest = manifestOf(kinds[kind], { stored, fields, isChanged, newName: name.trim() });
  const saveAsNew = (event: FormEvent): void => {
    event.preventDefault();
    if (fields === null) return;
    const bodyText = jsonOf([['name', JSON.stringify(name.trim())], ...fields]);
    create.mutate({ bodyText }, { onSuccess: (made) => onCreated(made.id) });
  };
  return (
    <form className="stack" onSubmit={saveAsNew}>
      {stored !== null && isOutdated ? <Outdated name={stored.name} there={stored.draft} draft={draft} /> : null}
      <div className="row">
        {stored === null || stored.sharedFrom !== null ? null : (
          <button
            type="button"
            className="btn"
            disabled={fields === null || !isChanged || isOutdated || update.isPending}
            onClick={() => update.mutate()}
          >
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
      {update.data?.isWritten === true && !isChanged ? (
        <p className="small muted" role="status">
          Saved.
        </p>
      ) : null}
      <Refusal error={update.error ?? create.error} />
    </form>
  );
}

/** Writes over what the draft was begun with. What another has written since is only read, and stays. */
function useUpdate({ kind, id = '', draft: { draft, base, wasSaved }, fields }: Pick<LabSaveProps, 'kind' | 'id' | 'draft' | 'fields'>) {
  const organization = useOrganization();
  const client = useQueryClient();
  const { read, update } = kinds[kind];
  const input = { path: { id } };
  /** What it is now, also for the bench. */
  const isNow = (bytes: Uint8Array<ArrayBuffer>) => {
    client.setQueryData(bytesKey(organization, read, input), bytes);
    return storedIn(kind, new TextDecoder().decode(bytes)).draft;
  };
  return useMutation<{ isWritten: boolean }, ApiError>({
    mutationFn: async () => {
      const before = isNow(await readBytes(read, input, { organization }));
      if (fields === null || !isSameDraft(before, base)) return { isWritten: false };
      const written = await readBytes(update, { ...input, bodyText: jsonOf(fields) }, { organization });
      wasSaved(draft, isNow(written));
      return { isWritten: true };
    },
    onSettled: () => void client.invalidateQueries({ queryKey: [organization] }),
  });
}

/** Shows what another has saved since the draft was begun, beside the draft. */
function Outdated({ name, there, draft }: { name: string; there: Draft; draft: DraftState }): ReactElement {
  return (
    <>
      <div className="note is-bad" role="alert">
        <Icon name="fail" />
        <div>
          <p>
            <strong>{name} was changed meanwhile.</strong> To save this text would replace what another has saved.
          </p>
          {there.type === draft.draft.type ? null : (
            <p>
              The saved one is in {there.type}, this text in {draft.draft.type}.
            </p>
          )}
          <p className="btn-row">
            <button type="button" className="btn is-sm" onClick={draft.undo}>
              Take what is saved
            </button>
            <button type="button" className="btn is-sm" onClick={draft.rebase}>
              Keep this text
            </button>
          </p>
        </div>
      </div>
      <LinesBeside label="What differs" titles={['Saved', 'This text']} before={laidOut(there.text)} after={laidOut(draft.draft.text)} />
    </>
  );
}
