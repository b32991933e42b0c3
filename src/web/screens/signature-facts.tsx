import type { ReactElement } from 'react';
import type { Answer } from '../api/client.ts';
import { CopyButton } from '../ui/copy.tsx';
import { Minute } from '../ui/time.tsx';

type Endpoint = Answer<'GET /webhook-endpoints/{id}'>['data'];

export type Signing = Pick<Endpoint, 'signatureScheme' | 'publicKey' | 'previousPublicKeys'>;

/** Schemes, as the facts of a target name them. */
export const signatureWords = {
  'hmac-sha256': 'v1 (HMAC-SHA256)',
  ed25519: 'v1a (Ed25519)',
  both: 'v1 (HMAC-SHA256) and v1a (Ed25519)',
} satisfies Record<Signing['signatureScheme'], string>;

/**
 * What requests are signed with, and the public keys that verify them; within a list of facts. `isSigned`: false where there is no secret; `isAwaited`: because the
 * import left it out.
 */
export function SignatureFacts({
  signing,
  isSigned,
  isAwaited = false,
}: {
  signing: Signing;
  isSigned: boolean;
  isAwaited?: boolean;
}): ReactElement {
  const { signatureScheme, publicKey, previousPublicKeys } = signing;
  return (
    <>
      <dt>Signatures</dt>
      <dd>{isSigned ? signatureWords[signatureScheme] : isAwaited ? unsignedImport : 'none'}</dd>
      {publicKey === null ? null : (
        <>
          <dt>Public key</dt>
          <dd>
            <code>{publicKey}</code> <CopyButton text={publicKey} label="Copy public key" isQuiet />
          </dd>
        </>
      )}
      {previousPublicKeys.length === 0 ? null : (
        <>
          <dt>Earlier public keys</dt>
          <dd>
            {previousPublicKeys.map((earlier) => (
              <div key={earlier.publicKey}>
                <code>{earlier.publicKey}</code>{' '}
                {earlier.expiresAt === null ? 'while the Secret holds it' : <Until at={earlier.expiresAt} />}
              </div>
            ))}
          </dd>
        </>
      )}
    </>
  );
}

const unsignedImport = 'none: the import left out the signing secret. The destination cannot be enabled before it has one, or awaits none.';

function Until({ at }: { at: string }): ReactElement {
  return (
    <>
      signs until <Minute at={at} />
    </>
  );
}
