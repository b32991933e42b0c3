import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useBlocker, useNavigate } from '@tanstack/react-router';
import { type FormEvent, type ReactElement, useEffect, useRef, useState } from 'react';
import { type ApiError, call, type Input } from '../../api/client.ts';
import type { FormField } from '../../api/form-schema.ts';
import { Confirm } from '../../ui/confirm.tsx';
import { Segments } from '../../ui/segments.tsx';
import { AsCode } from '../as-code.tsx';
import { Page } from '../page.tsx';
import { Refusal } from '../resource-acts.tsx';
import { useOrganization } from '../use-api.ts';
import { type Body, bodyOfRecord, type Complaints, changesOf, complaintsOf, missingFields, objectIn, sentBody } from './body.ts';
import type { Family } from './families.ts';
import { Fields } from './field.tsx';
import { JsonBody } from './json-body.tsx';

type Operation = `POST /${Family['api']}` | `PATCH /${Family['api']}/{id}`;

const views = [
  { value: 'form', word: 'Form' },
  { value: 'json', word: 'JSON' },
] as const;

export interface ResourceFormProps {
  family: Family;
  fields: readonly FormField[];
  /** The resource that is changed; null: a new one is made. */
  record: Body | null;
}

/** Makes or changes a resource. What is sent is in the JSON, too. */
export function ResourceForm({ family, fields, record }: ResourceFormProps): ReactElement {
  const org = useOrganization();
  const navigate = useNavigate();
  const client = useQueryClient();
  const frame = useRef<HTMLFormElement>(null);
  const isSaved = useRef(false);
  const [start] = useState(() => (record === null ? {} : bodyOfRecord(fields, record)));
  const [body, setBody] = useState<Body>(start);
  const [view, setView] = useState<'form' | 'json'>('form');
  const [isWrongJson, setWrongJson] = useState(false);
  const [missing, setMissing] = useState<Complaints>({});
  const isChange = record !== null;
  const names = fields.map(({ name }) => name);
  const sent = isChange ? changesOf(fields, start, sentBody(fields, body)) : sentBody(fields, body);
  const isDirty = Object.keys(sent).length > 0 || isWrongJson;
  const name: Operation = isChange ? `PATCH /${family.api}/{id}` : `POST /${family.api}`;
  const input = { ...(isChange && { path: { id: String(record['id']) } }), body: sent } as unknown as Input<Operation>;

  const save = useMutation<unknown, ApiError>({
    mutationFn: () => call(name, input, { organization: org }),
    onSuccess: async (answer) => {
      isSaved.current = true;
      void client.invalidateQueries({ queryKey: [org] });
      const at = String(recordIn(answer)['id'] ?? '');
      await navigate({ to: `/o/$org/${family.list}`, params: { org }, search: { at } });
    },
  });
  const complaints = { ...(save.error === null ? {} : complaintsOf(save.error, names)), ...missing };
  const blocker = useBlocker({
    shouldBlockFn: () => isDirty && !isSaved.current,
    enableBeforeUnload: () => isDirty && !isSaved.current,
    withResolver: true,
  });

  // The first faulty field gets the focus, also where it was below the further settings.
  const faults = Object.keys(complaints).join();
  useEffect(() => {
    if (faults !== '') frame.current?.querySelector<HTMLElement>('[aria-invalid="true"], [data-invalid]')?.focus();
  }, [faults]);

  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const absent = missingFields(fields, isChange ? body : sent);
    setMissing(Object.fromEntries(absent.map((path) => [path, 'This is required.'])));
    save.reset();
    if (absent.length === 0) save.mutate();
    else setView('form');
  };
  const change = (next: Body): void => {
    setBody(next);
    setMissing({});
  };
  const further = fields.filter(({ isMain }) => isMain !== true);
  const part = { body, onChange: change, whole: { fields, body }, complaints, path: '', isChange };
  const isFurtherFaulty = further.some((field) => Object.keys(complaints).some((path) => /^\w+/.exec(path)?.[0] === field.name));
  const title = isChange ? `Edit ${String(record['name'])}` : `New ${family.noun}`;
  return (
    <Page
      title={title}
      actions={
        <>
          <Segments label="View" choices={views} value={view} onChange={(next) => (isWrongJson ? undefined : setView(next))} />
          <AsCode name={name} input={input} />
        </>
      }
    >
      <form className="form resource-form" ref={frame} onSubmit={submit} noValidate aria-label={title}>
        <Refusal error={save.error} />
        {view === 'json' ? (
          <JsonBody body={sent} onChange={(next) => change(isChange ? { ...start, ...next } : next)} onWrong={setWrongJson} />
        ) : (
          <>
            <Fields {...part} fields={fields.filter(({ isMain }) => isMain === true)} />
            {further.length === 0 ? null : (
              <details open={isFurtherFaulty || undefined}>
                <summary>Further settings</summary>
                <div className="form">
                  <Fields {...part} fields={further} />
                </div>
              </details>
            )}
          </>
        )}
        <div className="btn-row">
          <button type="submit" className="btn is-primary" disabled={save.isPending || isWrongJson || (isChange && !isDirty)}>
            {isChange ? 'Save' : `Create ${family.noun}`}
          </button>
          <button type="button" className="btn is-quiet" onClick={() => void navigate({ to: `/o/$org/${family.list}`, params: { org } })}>
            Cancel
          </button>
        </div>
      </form>
      <Confirm
        title="Leave without saving?"
        act="Leave"
        keep="Stay"
        isDanger
        isOpen={blocker.status === 'blocked'}
        isPending={false}
        error={null}
        onClose={() => blocker.reset?.()}
        onAct={() => blocker.proceed?.()}
      >
        <p>What you have changed here is not saved.</p>
      </Confirm>
    </Page>
  );
}

/** Some families answer with the record in an envelope. */
export function recordIn(answer: unknown): Body {
  const all = objectIn(answer);
  return objectIn(all['data'] ?? all['cronJob'] ?? all);
}
