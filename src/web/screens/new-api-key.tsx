import { type FormEvent, type ReactElement, useId, useState } from 'react';
import type { Answer } from '../api/client.ts';
import { Refusal } from '../app/resource-acts.tsx';
import { type SecretGuard, ShownOnce, useSecretGuard } from '../app/secret-dialog.tsx';
import { useWrite } from '../app/use-api.ts';
import { CopyButton } from '../ui/copy.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { Icon } from '../ui/icon.tsx';
import { Day } from '../ui/time.tsx';

type Made = Answer<'POST /api-keys'>;
type Role = Made['apiKey']['role'];
type Scope = Made['apiKey']['scopes'][number];

const roles: readonly { role: Role; word: string; scopes: readonly Scope[] }[] = [
  { role: 'viewer', word: 'Viewer: sees everything but keys, and changes nothing', scopes: ['read'] },
  { role: 'developer', word: 'Developer: also sends, changes and deletes', scopes: ['read', 'write', 'delete'] },
  { role: 'admin', word: 'Admin: also sees, makes and revokes keys', scopes: ['read', 'write', 'delete'] },
];
const ends = [
  { days: 30, word: 'In 30 days' },
  { days: 90, word: 'In 90 days' },
  { days: 365, word: 'In a year' },
  { days: null, word: 'Never' },
] as const;
const usual = { role: 'developer', days: 90 } as const;

/** Creates an API key, and shows it for the only time. */
export function NewApiKey(): ReactElement {
  const [isOpen, setOpen] = useState(false);
  const [made, setMade] = useState<Made | null>(null);
  const guard = useSecretGuard({ noun: 'key', remedy: 'revoke it and create another one' });
  // It outlives the form: what is sent again after an answer that was lost makes no second key.
  const create = useWrite('POST /api-keys', { isSecret: true });
  return (
    <>
      <button type="button" className="btn is-sm" onClick={() => setOpen(true)}>
        <Icon name="plus" />
        New key…
      </button>
      {isOpen ? (
        <KeyForm
          guard={guard}
          create={create}
          onMade={(answer) => {
            setOpen(false);
            setMade(answer);
          }}
          onClose={() => setOpen(false)}
        />
      ) : null}
      {made === null ? null : <NewKey made={made} guard={guard} onStored={() => setMade(null)} />}
    </>
  );
}

interface KeyFormProps {
  guard: SecretGuard;
  create: ReturnType<typeof useWrite<'POST /api-keys'>>;
  onMade: (made: Made) => void;
  onClose: () => void;
}

function KeyForm({ guard, create, onMade, onClose }: KeyFormProps): ReactElement {
  const [name, setName] = useState('');
  const [role, setRole] = useState<Role>(usual.role);
  const [withheld, setWithheld] = useState<readonly Scope[]>([]);
  const [days, setDays] = useState<number | null>(usual.days);
  const ids = { name: useId(), role: useId(), days: useId() };
  const grantable = roles.find((each) => each.role === role)?.scopes ?? [];
  const scopes = grantable.filter((scope) => !withheld.includes(scope));
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    guard.hold();
    const body = { name: name.trim(), role, scopes, ...(days !== null && { expiresInDays: days }) };
    // The dialog shows why.
    void create.mutateAsync({ body }).then(onMade, guard.letGo);
  };
  return (
    <Dialog title="New API key" isOpen needsAct={create.isPending} onClose={onClose}>
      <form className="form" onSubmit={submit}>
        <div className="field">
          <label htmlFor={ids.name}>Name</label>
          <input
            className="input"
            id={ids.name}
            required
            maxLength={200}
            autoFocus
            value={name}
            onChange={({ target }) => setName(target.value)}
          />
          <span className="help">Who or what uses it, such as the deploy pipeline.</span>
        </div>
        <div className="field">
          <label htmlFor={ids.role}>Role</label>
          <select className="input" id={ids.role} value={role} onChange={({ target }) => setRole(roleOf(target.value))}>
            {roles.map((each) => (
              <option key={each.role} value={each.role}>
                {each.word}
              </option>
            ))}
          </select>
        </div>
        <fieldset className="field">
          <legend>Scopes</legend>
          <span className="row">
            {grantable.map((scope) => (
              <label className="check" key={scope}>
                <input
                  type="checkbox"
                  checked={!withheld.includes(scope)}
                  onChange={({ target }) => setWithheld(target.checked ? withheld.filter((each) => each !== scope) : [...withheld, scope])}
                />
                {scope}
              </label>
            ))}
          </span>
          {scopes.length === 0 ? <span className="help">A key has at least one scope.</span> : null}
        </fieldset>
        <div className="field">
          <label htmlFor={ids.days}>Ends</label>
          <select
            className="input"
            id={ids.days}
            value={days ?? ''}
            onChange={({ target }) => setDays(target.value === '' ? null : Number(target.value))}
          >
            {ends.map((each) => (
              <option key={each.word} value={each.days ?? ''}>
                {each.word}
              </option>
            ))}
          </select>
          <span className="help">A key that is made with a key ends no later than that one, and is revoked with it.</span>
        </div>
        <Refusal error={create.error} />
        <div className="btn-row is-end">
          <button type="button" className="btn" disabled={create.isPending} onClick={onClose}>
            Cancel
          </button>
          <button type="submit" className="btn is-primary" disabled={create.isPending || scopes.length === 0}>
            {create.isPending ? 'Creating…' : 'Create key'}
          </button>
        </div>
      </form>
      {guard.question}
    </Dialog>
  );
}

function NewKey({ made: { key, apiKey }, guard, onStored }: { made: Made; guard: SecretGuard; onStored: () => void }): ReactElement {
  return (
    <ShownOnce title={`Store the key ${apiKey.name}`} guard={guard} onStored={onStored}>
      <p>
        Programs send it in the header <code>x-api-key</code>. It is not shown again. Anyone who has it may do what its role allows.
      </p>
      <p className="row">
        <code>{key}</code>
        <CopyButton text={key} label="Copy key" />
      </p>
      <p>
        {apiKey.expiresAt === null ? (
          'It ends when it is revoked.'
        ) : (
          <>
            It ends on <Day at={apiKey.expiresAt} />.
          </>
        )}
        {apiKey.createdBy?.keyId == null ? '' : ` It is revoked with the key ${apiKey.createdBy.name}, which made it.`}
      </p>
    </ShownOnce>
  );
}

function roleOf(value: string): Role {
  return roles.find(({ role }) => role === value)?.role ?? usual.role;
}
