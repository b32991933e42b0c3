import { type ReactElement, useId, useState } from 'react';
import type { Answer } from '../api/client.ts';
import { Refusal } from '../app/resource-acts.tsx';
import { SecretDialog, useSecretGuard } from '../app/secret-dialog.tsx';
import { useWrite } from '../app/use-api.ts';
import { Dialog } from '../ui/dialog.tsx';
import { Icon } from '../ui/icon.tsx';
import { Minute } from '../ui/time.tsx';
import { type Signing, signatureWords } from './signature-facts.tsx';

type Rotated = Answer<'POST /webhook-endpoints/{id}/rotate-secret'>;

/** How long the old secret signs, too. */
const overlaps = [
  { seconds: 3600, word: '1 hour' },
  { seconds: 21_600, word: '6 hours' },
  { seconds: 86_400, word: '24 hours' },
  { seconds: 0, word: 'Not at all: it ends at once' },
] as const;

/** Gives an endpoint another secret, and another key where it has one, after the question how long the old ones sign, too. */
export function RotateSecret({ id, signing }: { id: string; signing: Signing }): ReactElement {
  const [isOpen, setOpen] = useState(false);
  const [overlap, setOverlap] = useState<number>(overlaps[0].seconds);
  const [made, setMade] = useState<Rotated | null>(null);
  const rotate = useWrite('POST /webhook-endpoints/{id}/rotate-secret', { isSecret: true });
  const guard = useSecretGuard();
  const field = useId();
  const close = (): void => {
    setOpen(false);
    rotate.reset();
  };
  const act = (): void => {
    guard.hold();
    void rotate.mutateAsync({ path: { id }, body: { gracePeriodSeconds: overlap } }).then(
      (rotated) => {
        close();
        setMade(rotated);
      },
      // The dialog shows why.
      guard.letGo,
    );
  };
  return (
    <>
      <button type="button" className="btn" onClick={() => setOpen(true)}>
        <Icon name="key" />
        Rotate secret…
      </button>
      <Dialog title="Rotate the signing secret?" isOpen={isOpen} needsAct={rotate.isPending} onClose={close}>
        <p>
          Messages are signed with a new secret
          {signing.publicKey === null ? '' : ' and a new key'} from now on. The scheme stays {signatureWords[signing.signatureScheme]}.
        </p>
        <div className="field">
          <label htmlFor={field}>The old {signing.publicKey === null ? 'one signs' : 'ones sign'}, too, for</label>
          <select className="input" id={field} value={overlap} onChange={({ target }) => setOverlap(Number(target.value))}>
            {overlaps.map(({ seconds, word }) => (
              <option key={seconds} value={seconds}>
                {word}
              </option>
            ))}
          </select>
          <span className="help">
            {overlap === 0
              ? 'All old ones end. A receiver that does not have the new one refuses what it is sent.'
              : 'The receiver takes the new one in this time, and misses nothing.'}
          </span>
        </div>
        <Refusal error={rotate.error} />
        <div className="btn-row is-end">
          <button type="button" className="btn" disabled={rotate.isPending} onClick={close}>
            Keep it
          </button>
          <button type="button" className="btn is-danger" disabled={rotate.isPending} onClick={act}>
            Rotate secret
          </button>
        </div>
        {guard.question}
      </Dialog>
      {made === null ? null : (
        <SecretDialog secret={made.secret} publicKey={made.publicKey} guard={guard} onStored={() => setMade(null)}>
          <p>
            {made.previousSecretExpiresAt === null ? (
              'The old secret has ended.'
            ) : (
              <>
                {made.previousPublicKey === null ? 'The old secret signs' : 'The old secret and the old key sign'} until{' '}
                <Minute at={made.previousSecretExpiresAt} />.
              </>
            )}
          </p>
        </SecretDialog>
      )}
    </>
  );
}
