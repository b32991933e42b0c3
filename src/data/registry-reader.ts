import { PosthornError } from '../core/errors.ts';
import type { RecordByKind, RecordKind } from '../core/records.ts';
import type { RedisClient } from '../redis/connection.ts';
import { throwUnavailable } from '../redis/unavailable.ts';
import { FollowedCache, type FollowedCacheOptions } from './followed-cache.ts';
import type { RegistryReader } from './registry.ts';
import { type RegistryKeys, registryKeys } from './registry-keys.ts';
import { parseRecord } from './registry-record.ts';

/** `maxEntries`: of records, index entries and derived values. */
export interface RegistryReaderOptions extends Pick<FollowedCacheOptions, 'blocking' | 'clock' | 'logger' | 'maxEntries'> {
  /** For reads of what is not in the cache. */
  redis: RedisClient;
  prefix: string;
}

/**
 * Reads throw UNAVAILABLE when Redis does not answer, and for what is absent while the first leader publishes into this Redis; what is
 * cached is served all the same. What is not there is asked for anew every time.
 */
export class RedisRegistryReader implements RegistryReader {
  readonly #redis: RedisClient;
  readonly #keys: RegistryKeys;
  readonly #cache: FollowedCache;

  constructor({ redis, prefix, ...following }: RegistryReaderOptions) {
    this.#redis = redis;
    this.#keys = registryKeys(prefix);
    this.#cache = new FollowedCache({ ...following, keys: this.#keys });
  }

  /** Begins to follow the changes; Redis need not be up. */
  start(): void {
    this.#cache.start();
  }

  async stop(): Promise<void> {
    await this.#cache.stop();
  }

  get<K extends RecordKind>(kind: K, id: string): Promise<RecordByKind[K] | null> {
    return this.#lookUp(`${kind}:${id}`, this.#keys.records(kind), id, (json) => parseRecord(kind, json));
  }

  sourceIdBySlug(orgSlug: string, sourceSlug: string): Promise<string | null> {
    return this.#indexed('source-slug', `${orgSlug}/${sourceSlug}`);
  }

  eventTypeIdByName(org: string, name: string): Promise<string | null> {
    return this.#indexed('event-type', `${org}/${name}`);
  }

  apiKeyIdByHash(sha256: string): Promise<string | null> {
    return this.#indexed('api-key', sha256);
  }

  organizationIdBySlug(slug: string): Promise<string | null> {
    return this.#indexed('org-slug', slug);
  }

  routeIdsOfSource(sourceId: string): Promise<string[]> {
    return this.#members(`routes-of:${sourceId}`);
  }

  channelIdsOfOrganization(org: string): Promise<string[]> {
    return this.#members(`channels-of:${org}`);
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

  onChange(listener: (changeKey: string) => void): () => void {
    return this.#cache.onChange(listener);
  }

  #indexed(name: string, field: string): Promise<string | null> {
    return this.#lookUp(`${name}:${field}`, this.#keys.index(name), field, (id) => id);
  }

  /** A field of a hash; the cache key is the change key that throws it away. */
  #lookUp<T>(changeKey: string, hash: string, field: string, parse: (text: string) => T): Promise<T | null> {
    return this.#cache.get<T | null>(changeKey, async () => {
      const text = await this.#redis.hget(hash, field).catch(throwUnavailable);
      if (text !== null) return { value: parse(text), dependsOn: [changeKey], isCacheable: true };
      await this.#requirePublished();
      const published = await this.#redis.hget(hash, field).catch(throwUnavailable);
      return { value: published === null ? null : parse(published), dependsOn: [], isCacheable: false };
    });
  }

  /** In a new or emptied Redis "not there" means nothing: the leader is publishing everything. */
  async #requirePublished(): Promise<void> {
    if ((await this.#redis.exists(this.#keys.complete).catch(throwUnavailable)) === 1) return;
    throw new PosthornError('UNAVAILABLE', 'the configuration is being published', { retryAfterSeconds: 1 });
  }
}
