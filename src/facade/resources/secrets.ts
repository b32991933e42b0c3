import { createHash, randomBytes } from 'node:crypto';
import type { z } from 'zod';
import { isPosthornError, PosthornError } from '../../core/errors.ts';
import { base32 } from '../../core/ids.ts';
import { looksMasked, masked, maskedUnread } from '../../core/masking.ts';
import { isSealed } from '../../core/sealing.ts';
import { secretSealingContext } from '../../core/sealing-contexts.ts';
import { apiVersion } from '../../resources/definition.ts';
import type { secretKeyRef } from '../../resources/fields.ts';
import type { PosthornObject, SecretObject } from '../../resources/kinds.ts';
import type { ApplyObject } from '../../store/store.ts';
import { versionOf } from '../../store/store.ts';
import type { Call } from '../operation.ts';
import type { ServedKind } from '../services.ts';
import { facadeManager } from './owned-spec.ts';
import { forClients } from './store-errors.ts';

export type SecretKeyRef = z.output<typeof secretKeyRef>;

const writeAttempts = 8;

/** The field behind a reference that a `SecretDraft` of this slug has made; null for any other. */
export function generatedSecret({ name, key }: SecretKeyRef, slug: string): string | null {
  const isGenerated = name.startsWith(`posthorn-${slug}-`) && /^[a-z2-7]{8}$/.test(name.slice(`posthorn-${slug}-`.length));
  return isGenerated ? (/^(.+)-[a-z2-7]{8}$/.exec(key)?.[1] ?? null) : null;
}

/** The value that a reference points at; null when it is missing or cannot be read. */
export async function readSecret(call: Call, ref: SecretKeyRef): Promise<string | null> {
  const secret = await getSecret(call, ref.name);
  const encoded = secret?.data?.[ref.key];
  if (encoded === undefined) return null;
  const value = Buffer.from(encoded, 'base64').toString('utf8');
  if (!isSealed(value)) return value;
  try {
    return call.services.keyring.open(value, secretSealingContext(call.caller.organization.id, ref.name, ref.key));
  } catch (error) {
    call.services.logger.warn({ err: error, secret: ref.name, key: ref.key }, 'a sealed secret does not open');
    return null;
  }
}

/** The same for what only shows it, which goes on while the store is away: null then, too. */
export async function readToShow(call: Call, ref: SecretKeyRef): Promise<string | null> {
  try {
    return await readSecret(call, ref);
  } catch (error) {
    if (isPosthornError(error, 'UNAVAILABLE')) return null;
    throw error;
  }
}

/** How the value behind a reference is shown. */
export async function readMasked(call: Call, ref: SecretKeyRef): Promise<string> {
  const value = await readToShow(call, ref);
  return value === null ? maskedUnread : masked(value);
}

/** The value behind a reference that an equal request has made as its first one, before it was broken off; null for any other. */
export async function secretMadeBefore(call: Call, ref: SecretKeyRef): Promise<string | null> {
  return call.idempotency?.isTakenOver === true && ref.key.endsWith(`-${keySuffix(call, 0)}`) ? await readSecret(call, ref) : null;
}

/** Under an Idempotency-Key it says by which request the value was made. `place`: of the value in its write. */
function keySuffix({ idempotency }: Call, place: number): string {
  if (idempotency === null) return base32(randomBytes(5));
  return base32(createHash('sha256').update(`${idempotency.mark}\n${place}`).digest().subarray(0, 5));
}

/**
 * The secret values of one write. `put` decides what each sent value means; `store` writes the new ones, sealed, under
 * keys that nothing has used before, so that one apply of the resource flips from old to new (DESIGN section 3).
 */
export class SecretDraft {
  readonly #call: Call;
  readonly #slug: string;
  readonly #values = new Map<string, string>();
  #secretName: string | null = null;

  constructor(call: Call, slug: string) {
    this.#call = call;
    this.#slug = slug;
  }

  get isEmpty(): boolean {
    return this.#values.size === 0;
  }

  /**
   * The reference that a sent value gets: `current` when the value is what is stored, or its mask sent back; a new one
   * otherwise. VALIDATION_FAILED for a mask of something else. `path`: the field as the body has it.
   */
  async put(
    field: string,
    value: string,
    current: SecretKeyRef | undefined,
    { path = field, mask = masked }: { path?: string; mask?: (value: string) => string } = {},
  ): Promise<SecretKeyRef> {
    if (current !== undefined) {
      const stored = await readSecret(this.#call, current);
      if (stored === null ? value === maskedUnread : value === stored || value === mask(stored)) return current;
    }
    if (looksMasked(value))
      throw new PosthornError('VALIDATION_FAILED', `${path} is a masked value, but not that of the stored secret: send the secret itself.`);
    this.#secretName ??= `posthorn-${this.#slug}-${base32(randomBytes(5))}`;
    const key = `${field}-${keySuffix(this.#call, this.#values.size)}`;
    this.#values.set(key, value);
    return { name: this.#secretName, key };
  }

  /** Writes the new values into a Secret that is deleted with `owner`. */
  async store(owner: PosthornObject<ServedKind>): Promise<void> {
    const name = this.#secretName;
    if (name === null) return;
    const { organization } = this.#call.caller;
    const sealed = [...this.#values].map(([key, value]) => {
      const envelope = this.#call.services.keyring.seal(value, secretSealingContext(organization.id, name, key));
      return [key, Buffer.from(envelope).toString('base64')];
    });
    const { kind, metadata } = owner;
    const secret: ApplyObject<'Secret'> = {
      kind: 'Secret',
      metadata: {
        name,
        namespace: organization.namespace,
        labels: { 'app.kubernetes.io/managed-by': 'posthorn' },
        ownerReferences: [{ apiVersion, kind, name: metadata.name, uid: metadata.uid }],
      },
      type: 'Opaque',
      data: Object.fromEntries(sealed),
    };
    try {
      await this.#call.services.store.create(secret, { manager: facadeManager });
    } catch (error) {
      throw forClients(error, kind);
    }
  }

  /** Removes what `store` wrote, after the write of the resource failed. */
  async discard(): Promise<void> {
    if (this.#secretName !== null) await deleteSecret(this.#call, this.#secretName);
  }
}

/** Removes values that a resource referred to before a write and does no more, if they are in Secrets made for it here. */
export async function dropUnused(
  call: Call,
  owner: PosthornObject<ServedKind>,
  before: readonly SecretKeyRef[],
  after: readonly SecretKeyRef[],
): Promise<void> {
  const inUse = (name: string, key: string): boolean => after.some((ref) => ref.name === name && ref.key === key);
  const names = new Set(before.filter((ref) => !inUse(ref.name, ref.key)).map((ref) => ref.name));
  for (const name of names) await shrink(call, owner, name, (key) => inUse(name, key));
}

async function shrink(call: Call, owner: PosthornObject<ServedKind>, name: string, isKept: (key: string) => boolean): Promise<void> {
  for (let attempt = 1; attempt <= writeAttempts; attempt++) {
    const secret = await getSecret(call, name);
    if (secret === null || !isMadeFor(secret, owner)) return;
    const kept = Object.entries(secret.data ?? {}).filter(([key]) => isKept(key));
    if (kept.length === Object.keys(secret.data ?? {}).length) return;
    if (kept.length === 0) return deleteSecret(call, name);
    const { labels, ownerReferences } = secret.metadata;
    const object: ApplyObject<'Secret'> = {
      kind: 'Secret',
      metadata: { name, namespace: call.caller.organization.namespace, labels, ownerReferences },
      type: 'Opaque',
      data: Object.fromEntries(kept),
    };
    try {
      await call.services.store.apply(object, { manager: facadeManager, ifVersion: versionOf(secret) });
      return;
    } catch (error) {
      if (!isPosthornError(error, 'CONFLICT')) throw error;
    }
  }
}

function isMadeFor(secret: SecretObject, owner: PosthornObject<ServedKind>): boolean {
  const isOwned = secret.metadata.ownerReferences?.some((reference) => reference.uid === owner.metadata.uid) === true;
  return isOwned && secret.metadata.labels?.['app.kubernetes.io/managed-by'] === 'posthorn';
}

async function getSecret(call: Call, name: string): Promise<SecretObject | null> {
  try {
    return await call.services.store.get('Secret', { namespace: call.caller.organization.namespace, name });
  } catch (error) {
    if (isPosthornError(error, 'RESOURCE_NOT_FOUND', 'FORBIDDEN')) return null;
    throw error;
  }
}

async function deleteSecret(call: Call, name: string): Promise<void> {
  try {
    await call.services.store.delete('Secret', { namespace: call.caller.organization.namespace, name });
  } catch (error) {
    if (!isPosthornError(error, 'RESOURCE_NOT_FOUND')) throw error;
  }
}
