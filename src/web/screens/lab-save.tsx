import { type UseMutationResult, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, type ReactElement, type ReactNode, useId, useState } from 'react';
import { type Answer, ApiError, call, type Input, readBytes, readTagged } from '../api/client.ts';
import { useCandidates } from '../app/candidates.tsx';
import { storedManifestOf } from '../app/manifest/manifest-of.ts';
import { Refusal } from '../app/resource-acts.tsx';
import { bytesKey, useOrganization } from '../app/use-api.ts';
import { CopyButton } from '../ui/copy.tsx';
import { Icon } from '../ui/icon.tsx';
import { laidOut } from '../ui/json-layout.ts';
import { Failure } from '../ui/notices.tsx';
import { Choice, options } from './lab-choices.tsx';
import { type DraftState, isSameDraft } from './lab-draft.ts';
import { type Draft, type Field, jsonOf, type KindOfLab, kinds, type LabKind, type Stored, storedIn } from './lab-kinds.ts';
import { type Edited, manifestOf, type SubscriptionRefs, subscriptionManifest, unknownEndpoint } from './lab-manifest.ts';
import { SideBySide } from './lab-results.tsx';
import { type Manifest, yamlOf } from './lab-yaml.ts';

export interface LabSaveProps extends Omit<Edited, 'newName' | 'isChanged'> {
  kind: LabKind;
  /** Id or slug that was opened; undefined: a new one. */
  id: string | undefined;
  /** Name of the event type of an expression; null: none is chosen. */
  eventType: string | null;
  draft: DraftState;
  /** Writes a new one; the text is locked meanwhile. */
  create: UseMutationResult<Answer<KindOfLab['create']>, ApiError, Input<KindOfLab['create']>>;
  onCreated: (id: string) => void;
}

/** Tries at a record that others keep changing, though not its definition. */
const maxTries = 5;

/** Writes the definition to the object it came from or to a new one, or gives its manifest. */
export function LabSave(props: LabSaveProps): ReactElement {
  return props.kind === 'expression' ? <SubscriptionSave {...props} /> : <NamedSave {...props} />;
}

function NamedSave(props: LabSaveProps): ReactElement {
  const { kind, draft, stored, fields } = props;
  const [name, setName] = useState('');
  const field = useId();
  const newName = name.trim();
  const manifest = manifestOf(kinds[kind], { stored, fields, isChanged: draft.isChanged, newName });
  return (
    <SaveForm {...props} head={newName === '' ? null : [['name', JSON.stringify(newName)]]} manifest={manifest}>
      <span className="row">
        <label htmlFor={field}>Name</label>
        <span>
          <input className="input" id={field} maxLength={200} value={name} onChange={({ target }) => setName(target.value)} />
        </span>
      </span>
    </SaveForm>
  );
}

/** A subscription has no name: a new one is for an endpoint and an event type, with the label filters that were tried. */
function SubscriptionSave(props: LabSaveProps): ReactElement {
  const { stored, fields, eventType } = props;
  const [chosen, setChosen] = useState('');
  const endpoints = useCandidates('webhook-endpoints', chosen === '' ? [] : [chosen]);
  const { refs, error, retry } = useRefs(stored, chosen);
  const head: Field[] = [
    ['endpointId', JSON.stringify(chosen)],
    ['eventTypeId', JSON.stringify(eventType)],
    ...(stored?.subscription?.labels ?? []),
  ];
  const isNew = chosen !== '';
  return (
    <SaveForm
      {...props}
      head={isNew && eventType !== null ? head : null}
      manifest={refs === null ? null : subscriptionManifest(refs, { stored, isNew, eventType, fields })}
      hint={refs?.endpoint === null ? `Replace ${unknownEndpoint} in the manifest with the name of a WebhookEndpoint.` : null}
    >
      <Choice label="Endpoint" candidates={endpoints} value={chosen} onChange={setChosen}>
        <option value="">{stored === null ? 'Choose…' : 'Another one…'}</option>
        {options(endpoints.named, chosen === '' ? undefined : chosen, ({ id }) => id)}
      </Choice>
      {error === null ? null : <Failure message={`There is no manifest: ${error.message}`} requestId={error.requestId} retry={retry} />}
    </SaveForm>
  );
}

/** What the manifest of a subscription refers to: of the stored one, or of a new one for the endpoint that is chosen. `refs` null: they are not read. */
function useRefs(stored: Stored | null, chosen: string): { refs: SubscriptionRefs | null; error: ApiError | null; retry: () => void } {
  const organization = useOrganization();
  const own = chosen === '' ? stored : null;
  const endpointId = own?.subscription?.endpointId ?? chosen;
  const transformId = own?.subscription?.transformId ?? null;
  const { data, error, refetch } = useQuery<SubscriptionRefs, ApiError>({
    queryKey: [organization, 'subscription refs', own?.id ?? null, endpointId, transformId],
    queryFn: async ({ signal }) => {
      const nameOf = async (id: string): Promise<string | null> =>
        (await storedManifestOf(id, organization, signal))?.answer.manifest.metadata.name ?? null;
      return {
        own: own === null ? null : await nameOf(own.id),
        endpoint: endpointId === '' ? null : await nameOf(endpointId),
        transform:
          transformId === null ? null : (await call('GET /transforms/{id}', { path: { id: transformId } }, { organization, signal })).slug,
      };
    },
  });
  return { refs: data ?? null, error, retry: () => void refetch() };
}

interface SaveFormProps extends LabSaveProps {
  /** Fields of a new object beside the definition; null: they are not complete. */
  head: Field[] | null;
  manifest: Manifest | null;
  /** Notes on the manifest. */
  hint?: string | null;
  /** What names a new object. */
  children: ReactNode;
}

function SaveForm({
  kind,
  id,
  draft,
  create,
  onCreated,
  stored,
  fields,
  head,
  manifest,
  hint = null,
  children,
}: SaveFormProps): ReactElement {
  const { isChanged, isOutdated } = draft;
  const update = useUpdate({ kind, id, draft, fields });
  const saveAsNew = (event: FormEvent): void => {
    event.preventDefault();
    if (fields === null || head === null) return;
    const onSuccess = (made: Answer<KindOfLab['create']>): void => onCreated('data' in made ? made.data.id : made.id);
    create.mutate({ bodyText: jsonOf([...head, ...fields]) }, { onSuccess });
  };
  return (
    <form className="stack" onSubmit={saveAsNew}>
      {stored !== null && isOutdated ? <Outdated name={stored.name} there={stored.draft} draft={draft} /> : null}
      <div className="row is-low">
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
        {children}
        <button type="submit" className="btn" disabled={fields === null || head === null || create.isPending}>
          Save as new
        </button>
        {manifest === null ? null : <CopyButton text={() => yamlOf(manifest)} label="Copy as YAML" />}
      </div>
      {hint === null || manifest === null ? null : <p className="small muted">{hint}</p>}
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
      for (let attempt = 1; ; attempt++) {
        const { bytes, tag } = await readTagged(read, input, { organization });
        if (fields === null || !isSameDraft(isNow(bytes), base)) return { isWritten: false };
        try {
          const written = await readBytes(update, { ...input, bodyText: jsonOf(fields) }, { organization, ifMatch: tag });
          wasSaved(draft, isNow(written));
          return { isWritten: true };
        } catch (thrown) {
          // Another has changed it since it was read, though perhaps not its definition.
          if (attempt === maxTries || !(thrown instanceof ApiError && thrown.isOutdated)) throw thrown;
        }
      }
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
      <SideBySide label="What differs" titles={['Saved', 'This text']} before={laidOut(there.text)} after={laidOut(draft.draft.text)} />
    </>
  );
}
