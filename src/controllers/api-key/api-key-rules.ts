import { compileApiKey } from '../../compile/api-key.ts';
import type { Clock } from '../../core/clock.ts';
import { type MadeKey, maxMakers, rightsWithinMakers } from '../../core/key-rights.ts';
import type { PosthornObject } from '../../resources/kinds.ts';
import { byAge } from '../../resources/metadata.ts';
import type { ResourceCache } from '../../store/cache.ts';
import { type ControllerCaches, nameIn } from '../controller-caches.ts';
import { type IdClaims, isLive, mayHaveItsId } from '../held-ids.ts';
import type { Evaluation, PublishedRecord, ResourceRules } from '../resource-reconciler.ts';

type Caches = Pick<ControllerCaches, 'ApiKey'> & IdClaims;
type ApiKey = PosthornObject<'ApiKey'>;

/**
 * An API key refers to the key that made it: without that one the API refuses it, and it expires no later. An expired key keeps its record, so that
 * the API can report its expiry. Of several with one hash the oldest has the key that is sent; the others have no record.
 */
export function apiKeyRules(caches: Caches, clock: Clock): ResourceRules<'ApiKey'> {
  return {
    kind: 'ApiKey',
    evaluate: async (object, organization) => {
      const { name } = holderOf(caches, object, object.spec.sha256)?.metadata ?? object.metadata;
      if (name !== object.metadata.name)
        return {
          refusal: { reason: 'KeyTaken', message: `spec.sha256 is that of the older ApiKey ${name} of this namespace, which has the key` },
          isWithdrawn: true,
        };
      const compiled = compileApiKey(object, organization);
      if (compiled.record === undefined) return compiled;
      const rights = await rightsWithinMakers(compiled.record, async (sha256) => {
        const maker = holderOf(caches, object, sha256);
        return maker === undefined ? null : (compileApiKey(maker, organization).record ?? null);
      });
      if (rights === null)
        return {
          ...compiled,
          unresolved: { reason: 'KeyNotFound', message: 'the API key that created this one was deleted, so this one is rejected' },
        };
      return { ...compiled, ...expiryOf(compiled.record, rights, clock.now()) };
    },
  };
}

/** Computes the expiry of a key: that of a key above it if that is earlier. */
function expiryOf(own: MadeKey, { expiresAtMs }: Pick<MadeKey, 'expiresAtMs'>, nowMs: number): Evaluation<PublishedRecord<'ApiKey'>> {
  if (expiresAtMs === null) return {};
  if (expiresAtMs > nowMs) return { judgedAgainAtMs: expiresAtMs };
  const time = new Date(expiresAtMs).toISOString();
  const isOwnEnd = own.expiresAtMs === expiresAtMs;
  const message = isOwnEnd ? `the key expired at ${time}` : `a key that made this one expired at ${time}`;
  return { ineffective: { reason: 'Expired', message: `${message}; the API rejects it`, isStalled: isOwnEnd } };
}

/** Returns the keys of the namespace that the key with the hash made, those that they made, and so on, as deep as the API accepts. */
export function keysBelow(keys: ResourceCache<'ApiKey'>, namespace: string | undefined, sha256: string): Set<ApiKey> {
  const below = new Set<ApiKey>();
  // Each hash is looked up once: thousands of keys may have one hash, and name it as that of their maker.
  const known = new Set([sha256]);
  let makers = [sha256];
  for (let depth = 0; depth < maxMakers; depth++) {
    const made = makers.flatMap((maker) => keys.byIndex('keyMaker', nameIn(namespace, maker)));
    for (const key of made) below.add(key);
    makers = [...new Set(made.map(({ spec }) => spec.sha256))].filter((hash) => !known.has(hash));
    for (const hash of makers) known.add(hash);
  }
  return below;
}

/** Returns the oldest key of the object's namespace with the hash that may have a record. */
function holderOf(caches: Caches, { metadata }: ApiKey, sha256: string): ApiKey | undefined {
  const withHash = caches.ApiKey.byIndex('keyHash', nameIn(metadata.namespace, sha256)).filter(isLive);
  let holder: ApiKey | undefined;
  for (const each of withHash)
    if ((holder === undefined || byAge(each, holder) < 0) && mayHaveItsId(caches, caches.ApiKey, each)) holder = each;
  return holder;
}
