import { PosthornError } from '../../core/errors.ts';
import { GatheredReads } from '../../core/gathered-reads.ts';
import type { OwnedRecordKind, RecordByKind, RecordKind } from '../../core/records.ts';
import { sharedCall } from '../../core/shared-call.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { throwUnavailable } from '../../redis/unavailable.ts';
import { FollowedCache, type FollowedCacheOptions } from './followed-cache.ts';
import type { RegistryReader, RootRecordKind } from './registry.ts';
import { type RegistryKeys, registryKeys } from './registry-keys.ts';
import { parseRecord } from './registry-record.ts';

/** `maxEntries`: of records, index entries and derived values. */
export interface RegistryReaderOptions extends Pick<FollowedCacheOptions, 'blocking' | 'clock' | 'logger' | 'maxEntries'> {
  /** For reads of what is not in the cache. */
  redis: RedisClient;
  prefix: string;
}

/** In one call. */
const maxHashes = 1000;

/**
 * Reads throw UNAVAILABLE when Redis does not answer, and for what is absent while the first leader publishes into this Redis; what is
 * cached is served all the same. A missing record is read every time.
 */
export class RedisRegistryReader implements RegistryReader {
  readonly #redis: RedisClient;
  readonly #keys: RegistryKeys;
  readonly #cache: FollowedCache;
  /** Reads of keys that are not in the cache, which are mostly guesses: many cost hardly more than one. */
  readonly #apiKeyIds: GatheredReads<string | null>;
  readonly #askPublished: () => Promise<number>;

  constructor({ redis, prefix, ...following }: RegistryReaderOptions) {
    this.#redis = redis;
    this.#keys = registryKeys(prefix);
    this.#cache = new FollowedCache({ ...following, keys: this.#keys });
    this.#apiKeyIds = new GatheredReads((index, hashes) => redis.hmget(index, ...hashes).catch(throwUnavailable), maxHashes);
    this.#askPublished = sharedCall(() => redis.exists(this.#keys.complete).catch(throwUnavailable));
  }

  /** Begins to follow the changes; Redis need not be up. */
  start(): void {
    this.#cache.start();
  }

  async stop(): Promise<void> {
    await this.#cache.stop();
  }

  /** Invalidates all. */
  flush(): void {
    this.#cache.flush();
  }

  get<K extends RootRecordKind>(kind: K, id: string): Promise<RecordByKind[K] | null> {
    return this.#record(kind, id);
  }

  async getOf<K extends OwnedRecordKind>(org: string, kind: K, id: string): Promise<RecordByKind[K] | null> {
    const record = await this.#record(kind, id);
    return record?.org === org ? record : null;
  }

  getOfAny<K extends OwnedRecordKind>(kind: K, id: string): Promise<RecordByKind[K] | null> {
    return this.#record(kind, id);
  }

  #record<K extends RecordKind>(kind: K, id: string): Promise<RecordByKind[K] | null> {
    return this.#lookUp(`${kind}:${id}`, this.#keys.records(kind), id, (json) => parseRecord(kind, json));
  }

  sourceIdBySlug(orgSlug: string, sourceSlug: string): Promise<string | null> {
    return this.#indexed('source-slug', `${orgSlug}/${sourceSlug}`);
  }

  eventTypeIdByName(org: string, name: string): Promise<string | null> {
    return this.#indexed('event-type', `${org}/${name}`);
  }

  apiKeyIdByHash(sha256: string): Promise<string | null> {
    return this.#cached(
      `api-key:${sha256}`,
      () => this.#apiKeyIds.read(this.#keys.index('api-key'), sha256),
      (id) => id,
    );
  }

  organizationIdBySlug(slug: string): Promise<string | null> {
    return this.#indexed('org-slug', slug);
  }

  ownerOf(id: string): Promise<string | null> {
    return this.#redis.hget(this.#keys.owners, id).catch(throwUnavailable);
  }

  async organizationSlugs(): Promise<string[]> {
    await this.#requirePublished();
    return (await this.#redis.hkeys(this.#keys.index('org-slug')).catch(throwUnavailable)).sort();
  }

  routeIdsOfSource(sourceId: string): Promise<string[]> {
    return this.#members(`routes-of:${sourceId}`);
  }

  channelIdsOfOrganization(org: string): Promise<string[]> {
    return this.#members(`channels-of:${org}`);
  }

  ownSourceIdsOfOrganization(org: string): Promise<string[]> {
    const index = `own-sources-of:${org}`;
    // Deliveries use it, and do not wait until everything is published.
    return this.#cache.get(index, async () => {
      const value = await this.#redis.smembers(this.#keys.index(index)).catch(throwUnavailable);
      return { value, dependsOn: [index], isCacheable: value.length > 0 };
    });
  }

  archivingOrganizations(): Promise<string[]> {
    return this.#members('archives');
  }

  #members(index: string): Promise<string[]> {
    return this.#cache.get(index, async () => {
      // Some of the routes of an emptied Redis are not all of them: an event accepted now would miss the others for good.
      await this.#requirePublished();
      const value = await this.#redis.smembers(this.#keys.index(index)).catch(throwUnavailable);
      if (value.length === 0) await this.#requirePublished();
      return { value, dependsOn: [index], isCacheable: value.length > 0 };
    });
  }

  derive<T>(key: string, make: () => Promise<{ value: T; dependsOn: string[] }>): Promise<T> {
    return this.#cache.get(`derived:${key}`, async () => ({ ...(await make()), isCacheable: true }));
  }

  /** Whether a leader has published everything into this Redis. Throws UNAVAILABLE. */
  async isPublished(): Promise<boolean> {
    return (await this.#askPublished()) === 1;
  }

  onChange(listener: (changeKey: string) => void): () => void {
    return this.#cache.onChange(listener);
  }

  #indexed(name: string, field: string): Promise<string | null> {
    return this.#lookUp(`${name}:${field}`, this.#keys.index(name), field, (id) => id);
  }

  /** A field of a hash; the cache key is the change key that invalidates it. */
  #lookUp<T>(changeKey: string, hash: string, field: string, parse: (text: string) => T): Promise<T | null> {
    return this.#cached(changeKey, () => this.#redis.hget(hash, field).catch(throwUnavailable), parse);
  }

  #cached<T>(changeKey: string, read: () => Promise<string | null>, parse: (text: string) => T): Promise<T | null> {
    return this.#cache.get<T | null>(changeKey, async () => {
      const text = await read();
      if (text !== null) return { value: parse(text), dependsOn: [changeKey], isCacheable: true };
      await this.#requirePublished();
      const published = await read();
      return { value: published === null ? null : parse(published), dependsOn: [], isCacheable: false };
    });
  }

  /** In a new or emptied Redis "not there" means nothing: the leader is publishing everything. */
  async #requirePublished(): Promise<void> {
    // One sent before the caller's first read will do: the caller reads again after the reply.
    if (await this.isPublished()) return;
    throw new PosthornError('UNAVAILABLE', 'the configuration is being published', { retryAfterSeconds: 1 });
  }
}
