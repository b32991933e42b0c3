import { createHash, randomBytes } from 'node:crypto';
import { isPosthornError, PosthornError } from '../../core/errors.ts';
import { base32 } from '../../core/ids.ts';
import { looksMasked, masked, maskedUnread, meansStored } from '../../core/masking.ts';
import { plainSecret } from '../../core/plain-secret.ts';
import { secretSealingContext } from '../../core/sealing-contexts.ts';
import { isRecord } from '../../resources/field-tree.ts';
import {
  credentialOrigin,
  isSecretReference,
  isSecretRefName,
  madeForIn,
  madeForMetadata,
  secretUsesIn,
} from '../../resources/secret-use.ts';
import type { Call } from '../http/operation.ts';
import { facadeManager } from './owned-spec.ts';
import { credentialOf, readSecret, type SecretKeyRef, type SecretOwner } from './read-secret.ts';
import { forClients } from './store-errors.ts';
import type { Spec } from './write-rules.ts';

/** The field behind a reference that a `SecretDraft` of this slug has made; null for any other. */
export function generatedSecret({ name, key }: SecretKeyRef, slug: string): string | null {
  const isGenerated = name.startsWith(`posthorn-${slug}-`) && /^[a-z2-7]{8}$/.test(name.slice(`posthorn-${slug}-`.length));
  return isGenerated ? (/^(.+)-[a-z2-7]{8}$/.exec(key)?.[1] ?? null) : null;
}

/** The value behind a reference that an equal request has made as its first one, before it was aborted; null for any other. */
export async function secretMadeBefore(call: Call, object: SecretOwner, ref: SecretKeyRef): Promise<string | null> {
  return call.idempotency?.isTakenOver === true && ref.key.endsWith(`-${keySuffix(call, 0)}`) ? await readSecret(call, object, ref) : null;
}

/** With an Idempotency-Key it identifies the request. `place`: index of the value in its write. */
function keySuffix({ idempotency }: Call, place: number): string {
  if (idempotency === null) return base32(randomBytes(5));
  return base32(createHash('sha256').update(`${idempotency.mark}\n${place}`).digest().subarray(0, 5));
}

/** Operations of families on the secret values of a write. */
export type SentSecrets = Pick<SecretDraft, 'put'>;

/**
 * The secret values of one write. `put` decides what each sent value means; `store` writes the new ones, sealed, each into a Secret that nothing has
 * used before, so that one apply of the resource flips from old to new.
 */
export class SecretDraft {
  readonly #call: Call;
  readonly #slug: string;
  readonly #current: SecretOwner | undefined;
  readonly #values: { ref: SecretKeyRef; value: string }[] = [];

  /** `current`: the object as it is; absent on create. */
  constructor(call: Call, slug: string, current?: SecretOwner) {
    this.#call = call;
    this.#slug = slug;
    this.#current = current;
  }

  /**
   * The reference that a sent value gets: `current` when the value is what is stored, or its mask sent back; a new one
   * otherwise. VALIDATION_FAILED for a mask of something else. `path`: the field as the body has it.
   */
  async put(
    field: string,
    sent: string,
    current: SecretKeyRef | undefined,
    { path = field, mask = masked }: { path?: string; mask?: (value: string) => string } = {},
  ): Promise<SecretKeyRef> {
    const value = looksMasked(sent) ? sent : plainSecret(sent);
    if (current !== undefined) {
      const stored = await this.#stored(current, value);
      if (meansStored(value, stored, mask)) return current;
    }
    if (looksMasked(value))
      throw new PosthornError('VALIDATION_FAILED', `${path} is a masked value, but not that of the stored secret: send the secret itself.`);
    return this.#add(field, value);
  }

  /**
   * The spec with new references for stored credentials that the spec keeps, when it sends credentials to another destination than the current one: a
   * Secret serves one destination only. The caller has authorized the move.
   */
  async moved<S extends Spec>(spec: S): Promise<S> {
    const current = this.#current;
    if (current === undefined || credentialOrigin(current.kind, current.spec) === credentialOrigin(current.kind, spec)) return spec;
    const before = secretRefsIn(current.spec);
    const next = new Map<string, SecretKeyRef>();
    for (const ref of secretRefsIn(spec)) {
      const field = generatedSecret(ref, this.#slug);
      if (field === null || next.has(refText(ref)) || !before.some((each) => isSameRef(each, ref))) continue;
      const value = await readSecret(this.#call, current, ref);
      if (value !== null) next.set(refText(ref), this.#add(field, value));
    }
    return next.size === 0 ? spec : withSecretRefs(spec, (ref) => next.get(refText(ref)) ?? ref);
  }

  /** Writes each new value into a Secret that `owner` alone may use, named as in its spec, and that is deleted with it. */
  async store(owner: SecretOwner): Promise<void> {
    const { caller, services } = this.#call;
    const { id, namespace } = caller.organization;
    for (const { ref, value } of this.#values) {
      const metadata = { name: ref.name, namespace, ...madeForMetadata(owner) };
      const envelope = services.keyring.seal(value, secretSealingContext(id, ref.name, ref.key, madeForIn(metadata)));
      const data = { [ref.key]: Buffer.from(envelope).toString('base64') };
      try {
        await services.store.create({ kind: 'Secret', metadata, type: 'Opaque', data }, { manager: facadeManager });
      } catch (error) {
        throw forClients(error, owner.kind);
      }
    }
  }

  /** Removes what `store` wrote, after the write of the resource failed. */
  async discard(): Promise<void> {
    for (const { ref } of this.#values) await deleteSecret(this.#call, ref.name);
  }

  #add(field: string, value: string): SecretKeyRef {
    const name = `posthorn-${this.#slug}-${base32(randomBytes(5))}`;
    const ref = { name, key: `${field}-${keySuffix(this.#call, this.#values.length)}` };
    this.#values.push({ ref, value });
    return ref;
  }

  /** Where what is stored is not known, a value that is no mask replaces it all the same. */
  async #stored(ref: SecretKeyRef, sent: string): Promise<string | null> {
    if (this.#current === undefined) return null;
    try {
      return await readSecret(this.#call, this.#current, ref);
    } catch (error) {
      if (isPosthornError(error, 'UNAVAILABLE') && (!looksMasked(sent) || sent === maskedUnread)) return null;
      throw error;
    }
  }
}

/**
 * Names of the Secrets that the API made for the object and that nothing in the new spec refers to. What is not known to be made here stays, and goes with the
 * object.
 */
export async function unusedSecrets(call: Call, current: SecretOwner, spec: Spec): Promise<string[]> {
  const after = secretRefsIn(spec);
  const left = secretRefsIn(current.spec).filter((ref) => !after.some(({ name }) => name === ref.name));
  const known = await Promise.all(left.map((ref) => madeHere(call, current, ref)));
  return [...new Set(left.flatMap(({ name }, i) => (known[i] === true ? [name] : [])))];
}

async function madeHere(call: Call, current: SecretOwner, ref: SecretKeyRef): Promise<boolean> {
  try {
    return (await credentialOf(call, current, ref, call.services.inForceTimeoutMs))?.isMadeByApi === true;
  } catch (error) {
    if (isPosthornError(error, 'UNAVAILABLE')) return false;
    throw error;
  }
}

export async function deleteSecret(call: Call, name: string): Promise<void> {
  try {
    await call.services.store.delete('Secret', { namespace: call.caller.organization.namespace, name });
  } catch (error) {
    if (!isPosthornError(error, 'RESOURCE_NOT_FOUND')) throw error;
  }
}

function refText({ name, key }: SecretKeyRef): string {
  return `${name}/${key}`;
}

/** All references to Secrets in a spec. */
export function secretRefsIn(spec: unknown): SecretKeyRef[] {
  return secretUsesIn(spec).map(({ reference }) => reference);
}

/** The value with its references replaced. */
function withSecretRefs<T>(value: T, change: (ref: SecretKeyRef) => SecretKeyRef): T;
function withSecretRefs(value: unknown, change: (ref: SecretKeyRef) => SecretKeyRef): unknown {
  if (Array.isArray(value)) return value.map((item) => withSecretRefs(item, change));
  if (!isRecord(value)) return value;
  const members = Object.entries(value).map(([name, member]): [string, unknown] => [
    name,
    isSecretRefName(name) && isSecretReference(member) ? change({ name: member.name, key: member.key }) : withSecretRefs(member, change),
  ]);
  return Object.fromEntries(members);
}

export function isSameRef(one: SecretKeyRef, other: SecretKeyRef): boolean {
  return one.name === other.name && one.key === other.key;
}
