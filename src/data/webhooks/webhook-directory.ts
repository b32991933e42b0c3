import { GatheredReads } from '../../core/gathered-reads.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { FollowedCache, type FollowedCacheOptions } from '../registry/followed-cache.ts';
import { webhookRows } from './webhook-changes.ts';
import type { WebhookKind } from './webhook-ids.ts';
import { sharedWebhookKeys } from './webhook-keys.ts';
import { applicationKind, endpointKind, type KindOfWebhooks, subscriptionKind } from './webhook-kinds.ts';
import { type WebhookChange, webhookChangeKey } from './webhook-notes.ts';
import type { Row } from './webhook-rows.ts';
import { WebhookScripts } from './webhook-scripts.ts';
import type { WebhookApplication, WebhookEndpoint, WebhookSubscription } from './webhooks.ts';

export interface WebhookDirectoryOptions extends Pick<FollowedCacheOptions, 'blocking' | 'clock' | 'logger' | 'maxEntries'> {
  /** For reads of what is not kept. */
  redis: RedisClient;
  prefix: string;
}

/** A writer that dies between a write and its announcement does harm for so long at most. */
const keptMs = 60_000;
/** In one script call. */
const maxRows = 50;

type Rows<T> = GatheredReads<Row<T> | null>;

/**
 * Reads of the webhook store for workers: objects are kept from their third read on until a change of them is announced, and for a minute
 * at most. What is not there is asked for anew every time. Rejects with UNAVAILABLE for what is not kept while Redis does not answer.
 */
export class WebhookDirectory {
  readonly #cache: FollowedCache;
  readonly #applications: Rows<WebhookApplication>;
  readonly #endpoints: Rows<WebhookEndpoint>;
  readonly #subscriptions: Rows<WebhookSubscription>;

  constructor({ redis, prefix, ...following }: WebhookDirectoryOptions) {
    const scripts = new WebhookScripts({ redis, prefix });
    const rowsOf = <T>(kind: KindOfWebhooks<T>): Rows<T> => new GatheredReads((org, ids) => webhookRows(scripts, kind, org, ids), maxRows);
    this.#applications = rowsOf(applicationKind);
    this.#endpoints = rowsOf(endpointKind);
    this.#subscriptions = rowsOf(subscriptionKind);
    this.#cache = new FollowedCache({ ...following, keys: sharedWebhookKeys(prefix), keptMs, keepsFirst: false });
  }

  /** Begins to follow the changes; Redis need not be up. */
  start(): void {
    this.#cache.start();
  }

  async stop(): Promise<void> {
    await this.#cache.stop();
  }

  /** Throws away all that is kept. */
  flush(): void {
    this.#cache.flush();
  }

  application(org: string, id: string): Promise<WebhookApplication | null> {
    return this.#get('application', this.#applications, org, id, () => []);
  }

  endpoint(org: string, id: string): Promise<WebhookEndpoint | null> {
    return this.#get('endpoint', this.#endpoints, org, id, ({ applicationId }) => [{ kind: 'application', id: applicationId }]);
  }

  subscription(org: string, id: string): Promise<WebhookSubscription | null> {
    return this.#get('subscription', this.#subscriptions, org, id, ({ applicationId, endpointId, eventTypeId }) => [
      { kind: 'application', id: applicationId },
      { kind: 'endpoint', id: endpointId },
      { kind: 'eventType', id: eventTypeId },
    ]);
  }

  /**
   * Calls back after a change, with its change key (`webhookChangeKey`), or with `*` when any may have been missed. Returns the function
   * that ends it.
   */
  onChange(listener: (changeKey: string) => void): () => void {
    return this.#cache.onChange(listener);
  }

  #get<T>(kind: WebhookKind, rows: Rows<T>, org: string, id: string, above: (object: T) => WebhookChange[]): Promise<T | null> {
    return this.#cache.get<T | null>(`${org} ${id}`, async () => {
      const row = await rows.read(org, id);
      if (row === null) return { value: null, dependsOn: [], isCacheable: false };
      const changes: WebhookChange[] = [{ kind, id }, { kind: 'organization', id: org }, ...above(row.object)];
      return { value: row.object, dependsOn: changes.map(webhookChangeKey), isCacheable: true };
    });
  }
}
