import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { type FormEvent, type ReactElement, type ReactNode, useEffect, useRef, useState } from 'react';
import { ApiError, call, type Input } from '../../api/client.ts';
import type { FormField } from '../../api/form-schema.ts';
import { Icon } from '../../ui/icon.tsx';
import { Segments } from '../../ui/segments.tsx';
import { AsCode } from '../as-code.tsx';
import { useIdempotencyKey } from '../idempotency-key.ts';
import { useLeaveQuestion } from '../leave-question.tsx';
import { type Exact, readExact } from '../manifest/exact.ts';
import { GitPatch } from '../manifest/git-patch.tsx';
import { ManifestView } from '../manifest/manifest-view.tsx';
import { Page } from '../page.tsx';
import { Refusal } from '../resource-acts.tsx';
import { SecretDialog, type ShownSecret, useSecretGuard } from '../secret-dialog.tsx';
import { useOrganization } from '../use-api.ts';
import { Fields } from './field.tsx';
import {
  type Body,
  bodyOfRecord,
  type Complaints,
  changesOf,
  complaintsOf,
  mergedInto,
  missingFields,
  objectIn,
  sentBody,
} from './form-body.ts';
import type { Family } from './form-families.ts';
import { JsonBody } from './json-body.tsx';
import { withoutLocked } from './locks.ts';
import { OwnersNote } from './owners-note.tsx';

type Operation = `POST /${Family['api']}` | `PATCH /${Family['api']}/{id}`;

const views = [
  { value: 'form', word: 'Form' },
  { value: 'json', word: 'JSON' },
] as const;
const viewsOfManifest = [...views, { value: 'yaml', word: 'YAML' }] as const;
type View = (typeof viewsOfManifest)[number]['value'];

export interface ResourceFormProps {
  family: Family;
  fields: readonly FormField[];
  /** The resource that is changed; null: a new one is made. */
  record: Body | null;
  /** Version of the record: it is not saved over another one. */
  tag: string | null;
  /** Members that a new resource begins with. */
  preset: Body;
  /** A change of the record that the form begins with. */
  begun: Body;
  /** Members of the record that are not offered, because the form would change digits of their numbers. */
  withheld: readonly string[];
  /** As Kubernetes has it; null: a new one, or it has none. */
  manifest: Exact<'GET /manifests/{id}'> | null;
  /** Another has changed the record since. Resolves to what is saved where `sent` changes nothing of it, else to null. */
  onOutdated: (sent: Body) => Promise<Body | null>;
  /** Shows what another has saved beside what is typed here; null: there is no such change. `isWhole`: false while what is typed is not JSON. */
  outdated: ((sent: Body, isWhole: boolean) => ReactNode) | null;
}

/** Makes or changes a resource. What is sent is in the JSON, too. */
export function ResourceForm({
  family,
  fields: all,
  record,
  tag,
  preset,
  begun,
  withheld,
  manifest: exact,
  onOutdated,
  outdated,
}: ResourceFormProps): ReactElement {
  const org = useOrganization();
  const manifest = exact?.answer ?? null;
  const fields = all.filter((field) => !withheld.includes(field.name));
  const navigate = useNavigate();
  const client = useQueryClient();
  const frame = useRef<HTMLFormElement>(null);
  const isSaved = useRef(false);
  const keys = useIdempotencyKey();
  const secretGuard = useSecretGuard();
  const [start] = useState(() => bodyOfRecord(fields, record ?? preset));
  const [body, setBody] = useState<Body>(() => mergedInto(fields, start, begun));
  const [view, setView] = useState<View>('form');
  /** The text of the JSON view, which is sent unchanged; null: the form's values. */
  const [json, setJson] = useState<Body | null>(null);
  const [isWrongJson, setWrongJson] = useState(false);
  const [missing, setMissing] = useState<Complaints>({});
  const [submits, setSubmits] = useState(0);
  /** What is typed becomes a patch of the manifest, and nothing is saved. */
  const [isForGit, setForGit] = useState(false);
  /** What was made with a secret, which is shown once. */
  const [made, setMade] = useState<(ShownSecret & { row: string }) | null>(null);
  const [isFurtherOpen, setFurtherOpen] = useState(false);
  const isChange = record !== null;
  const names = fields.map(({ name }) => name);
  const whole = sentBody(fields, body);
  const { patch, stuck } = isChange ? changesOf(fields, start, whole) : { patch: whole, stuck: [] };
  const sent = json ?? patch;
  const hasChanges = isChange ? Object.keys(sent).length > 0 : JSON.stringify(sent) !== JSON.stringify(start);
  const isDirty = hasChanges || stuck.length > 0 || isWrongJson;
  const name: Operation = isChange ? `PATCH /${family.api}/{id}` : `POST /${family.api}`;
  const draftInput = { path: { id: String(record?.['id']) }, body: { change: sent } };
  const input = { ...(isChange && { path: { id: String(record['id']) } }), body: sent } as unknown as Input<Operation>;

  const save = useMutation<unknown, ApiError>({
    mutationFn: async () => {
      try {
        return await call(name, input, { organization: org, ifMatch: tag, ...(!isChange && { idempotencyKey: keys.keyOf(sent) }) });
      } catch (thrown) {
        const there = thrown instanceof ApiError && thrown.isOutdated ? await onOutdated(sent) : null;
        if (there === null) throw thrown;
        return there;
      }
    },
    // The answer may have a secret.
    gcTime: 0,
    onSettled: (_answer, error) => keys.hasEnded(error),
    onSuccess: async (answer) => {
      isSaved.current = true;
      void client.invalidateQueries({ queryKey: [org] });
      const { [family.row ?? 'id']: row, secret, publicKey } = recordIn(answer);
      const at = String(row ?? '');
      if (typeof secret !== 'string') return await leave(at);
      secretGuard.hold();
      setMade({ row: at, secret, publicKey: typeof publicKey === 'string' ? publicKey : null });
    },
  });
  const leave = (at: string): Promise<void> => navigate({ to: `/o/$org/${family.list}`, params: { org }, search: { at } });
  const draft = useMutation<Exact<'POST /manifests/{id}/patch'>, ApiError>({
    mutationFn: () => readExact('POST /manifests/{id}/patch', draftInput, { organization: org }),
  });
  const refused = (save.error?.isOutdated === true ? null : save.error) ?? draft.error;
  const complaints = { ...(refused === null ? {} : complaintsOf(refused, names)), ...missing };
  const leaveQuestion = useLeaveQuestion({
    title: 'Leave without saving?',
    isNeeded: () => isDirty && !isSaved.current,
    children: <p>What you have changed here is not saved.</p>,
  });

  // After a submit that finds the same faults, too.
  const faults = Object.keys(complaints).join();
  useEffect(() => {
    if (submits > 0 && faults !== '') focusFault(frame.current);
  }, [faults, submits]);

  const show = (next: View): void => {
    if (isWrongJson) return;
    setView(next);
    if (json !== null) setBody(isChange ? mergedInto(fields, start, json) : json);
    setJson(null);
  };
  const faultsOf = (): Complaints => {
    if (json !== null && isChange) return {};
    const absent = missingFields(fields, json ?? body).map((path) => [path, 'This is required.']);
    const kept = json === null ? stuck.map((path) => [path, 'This cannot be removed; give another value.']) : [];
    return Object.fromEntries([...kept, ...absent]);
  };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const found = faultsOf();
    setMissing(found);
    setSubmits(submits + 1);
    save.reset();
    draft.reset();
    const hasRefused = frame.current?.querySelector('textarea:invalid') instanceof HTMLElement;
    if (hasRefused) focusFault(frame.current);
    else if (Object.keys(found).length === 0) (isForGit ? draft : save).mutate();
    else show('form');
  };
  const change = (next: Body): void => {
    draft.reset();
    setBody(next);
    setMissing({});
  };
  /** Restores the locked fields: nobody could undo there what was typed. */
  const leaveGit = (): void => {
    setBody(withoutLocked(fields, manifest, start, json === null ? body : mergedInto(fields, start, json)));
    setJson(null);
    setMissing({});
  };
  const typed = (next: Body): void => {
    draft.reset();
    setJson(next);
    setMissing({});
  };
  const further = fields.filter(({ isMain }) => isMain !== true);
  const part = {
    body,
    start,
    onChange: change,
    whole: { fields, body },
    complaints,
    path: '',
    isChange,
    owned: isForGit ? null : manifest,
  };
  const title = isChange ? `Edit ${String(record['name'] ?? record['url'] ?? family.noun)}` : `New ${family.noun}`;
  return (
    <Page
      title={title}
      actions={
        <>
          <Segments label="View" choices={manifest === null ? views : viewsOfManifest} value={view} onChange={show} />
          {isForGit ? <AsCode name="POST /manifests/{id}/patch" input={draftInput} /> : <AsCode name={name} input={input} />}
        </>
      }
    >
      <form className="form resource-form" ref={frame} onSubmit={submit} noValidate aria-label={title}>
        {manifest === null ? null : (
          <OwnersNote
            manifest={manifest}
            isForGit={isForGit}
            onSwitch={() => {
              if (isForGit) leaveGit();
              setForGit(!isForGit);
              // The editor restarts with the last text that was JSON.
              setWrongJson(false);
              save.reset();
              draft.reset();
            }}
          />
        )}
        <Refusal error={refused} />
        {outdated?.(sent, !isWrongJson)}
        {save.error?.code === 'FIELD_MANAGED' && manifest?.isLocked !== true && draft.data === undefined ? (
          <div>
            <button type="button" className="btn" disabled={draft.isPending} onClick={() => draft.mutate()}>
              <Icon name="git" />
              Write it as a patch
            </button>
          </div>
        ) : null}
        {draft.data === undefined ? null : <GitPatch exact={draft.data} />}
        {withheld.length === 0 ? null : (
          <p className="note">Change {withheld.join(', ')} by the API: there are numbers with more digits than this form keeps.</p>
        )}
        {view === 'yaml' && exact !== null ? (
          <ManifestView exact={exact} />
        ) : view === 'json' ? (
          <JsonBody key={String(isForGit)} body={sent} onChange={typed} onWrong={setWrongJson} />
        ) : (
          <>
            <Fields {...part} fields={fields.filter(({ isMain }) => isMain === true)} />
            {further.length === 0 ? null : (
              <details open={isFurtherOpen} onToggle={({ currentTarget }) => setFurtherOpen(currentTarget.open)}>
                <summary>Further settings</summary>
                <div className="form">
                  <Fields {...part} fields={further} />
                </div>
              </details>
            )}
          </>
        )}
        <div className="btn-row">
          <button
            type="submit"
            className="btn is-primary"
            disabled={save.isPending || draft.isPending || isWrongJson || outdated !== null || (isChange && !isDirty)}
          >
            {isForGit ? 'Write the patch' : isChange ? 'Save' : `Create ${family.noun}`}
          </button>
          <button type="button" className="btn is-quiet" onClick={() => void navigate({ to: `/o/$org/${family.list}`, params: { org } })}>
            Cancel
          </button>
        </div>
      </form>
      {leaveQuestion}
      {made === null ? null : (
        <SecretDialog secret={made.secret} publicKey={made.publicKey} guard={secretGuard} onStored={() => void leave(made.row)} />
      )}
    </Page>
  );
}

/** The first faulty field gets the focus, also where it was below the further settings. */
function focusFault(form: HTMLFormElement | null): void {
  const field = form?.querySelector<HTMLElement>('[aria-invalid="true"], [data-invalid]');
  const hidden = field?.closest('details');
  if (hidden) hidden.open = true;
  field?.focus();
}

/** Some families answer with the record in an envelope. */
export function recordIn(answer: unknown): Body {
  const all = objectIn(answer);
  return objectIn(all['data'] ?? all['cronJob'] ?? all);
}
