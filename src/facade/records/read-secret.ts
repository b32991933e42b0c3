import type { z } from 'zod';
import { isPosthornError, PosthornError } from '../../core/errors.ts';
import { resourceId } from '../../core/ids.ts';
import { masked, maskedUnread } from '../../core/masking.ts';
import { plainSecret } from '../../core/plain-secret.ts';
import type { CredentialsRecord } from '../../core/records.ts';
import { recordSealingContext } from '../../core/sealing-contexts.ts';
import type { secretKeyRef } from '../../resources/fields.ts';
import { kinds } from '../../resources/kinds.ts';
import type { ObjectMeta } from '../../resources/metadata.ts';
import type { SecretUser } from '../../resources/secret-use.ts';
import type { Call } from '../http/operation.ts';
import type { ServedKind } from '../http/services.ts';
import { nouns } from './nouns.ts';

export type SecretKeyRef = z.output<typeof secretKeyRef>;

/** An object whose Secrets the API makes, and whose credentials it shows. */
export type SecretOwner = SecretUser & { kind: ServedKind; metadata: ObjectMeta };

export type Credential = CredentialsRecord['values'][number];

const lookEveryMs = 20;
/** How long a record that is known to be published may take to this process. */
const showTimeoutMs = 500;

/**
 * The value behind a reference of the object, as the leader has published it: the API reads no Secrets. Null when it is missing, cannot be read, or is not
 * the object's to use. UNAVAILABLE while nothing is published for the object as it is.
 */
export async function readSecret(
  call: Call,
  object: SecretOwner,
  ref: SecretKeyRef,
  timeoutMs = call.services.inForceTimeoutMs,
): Promise<string | null> {
  const credential = await credentialOf(call, object, ref, timeoutMs);
  return credential === null ? null : opened(call, object, credential);
}

/** The same for what only shows it: null, too, for what is not published yet. */
export async function readToShow(call: Call, object: SecretOwner, ref: SecretKeyRef): Promise<string | null> {
  // A record published before its object was reconciled may not have reached this process yet; unreconciled objects are not waited for.
  const mayFollow = verdictOn(call, object) === 'evaluated' && (await recordOf(call, object)) !== null;
  try {
    return await readSecret(call, object, ref, mayFollow ? Math.min(showTimeoutMs, call.services.inForceTimeoutMs) : 0);
  } catch (error) {
    if (isPosthornError(error, 'UNAVAILABLE')) return null;
    throw error;
  }
}

/** How the value behind a reference is shown. */
export async function readMasked(call: Call, object: SecretOwner, ref: SecretKeyRef): Promise<string> {
  const value = await readToShow(call, object, ref);
  return value === null ? maskedUnread : masked(value);
}

/**
 * Returns the published value behind a reference of the object. A missing one is waited for, at most so long, until the record is of the generation that the
 * caller has and the controllers have confirmed that: a Secret that the API has just made comes with them.
 */
export async function credentialOf(call: Call, object: SecretOwner, ref: SecretKeyRef, timeoutMs: number): Promise<Credential | null> {
  const { clock } = call.services;
  const deadlineMs = clock.now() + timeoutMs;
  for (;;) {
    // Before the record, so that a record which comes in between is not taken for the last word.
    const verdict = verdictOn(call, object);
    const record = await recordOf(call, object);
    const found = record?.values.find(({ secret, key }) => secret === ref.name && key === ref.key);
    if (found !== undefined) return found;
    const isOfGeneration = record !== null && record.generation >= object.metadata.generation;
    if (verdict === 'refused' || (verdict === 'evaluated' && isOfGeneration)) return null;
    if (clock.now() >= deadlineMs) {
      const message = `The credentials of the ${nouns[object.kind]} are not published yet; send the request again.`;
      throw new PosthornError('UNAVAILABLE', message, { retryAfterSeconds: 1 });
    }
    await clock.sleep(lookEveryMs);
  }
}

function recordOf({ caller, services }: Call, object: SecretOwner): Promise<CredentialsRecord | null> {
  return services.registry.getOf(caller.organization.id, 'credentials', idOfOwner(object));
}

function opened({ caller, services }: Call, object: SecretOwner, { secret, key, sealed }: Credential): string | null {
  try {
    return plainSecret(
      services.keyring.open(sealed, recordSealingContext(caller.organization.id, 'credentials', idOfOwner(object), 'value')),
    );
  } catch (error) {
    services.logger.warn({ err: error, secret, key }, 'a published credential cannot be decrypted');
    return null;
  }
}

function idOfOwner({ kind, metadata }: SecretOwner): string {
  return resourceId(kinds[kind].idPrefix, metadata);
}

/**
 * The verdict of the controllers on the object as it is, or on a later one. `refused`: they did not come to its references, as when another object
 * has its id; null: nothing yet.
 */
function verdictOn({ services }: Call, { kind, metadata }: SecretOwner): 'evaluated' | 'refused' | null {
  const cached = services.caches[kind].get(metadata);
  if (cached?.metadata.uid !== metadata.uid || (cached.status?.observedGeneration ?? 0) < metadata.generation) return null;
  const references = cached.status?.conditions?.find(({ type }) => type === 'ResolvedRefs');
  return references === undefined || references.status === 'Unknown' ? 'refused' : 'evaluated';
}
