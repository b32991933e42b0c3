import type { Clock } from '../../core/clock.ts';
import type { Logger } from '../../core/logger.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { ChangeStream } from '../change-stream.ts';
import { RegistryCache } from '../registry-cache.ts';
import { webhookRows } from './webhook-changes.ts';
import { sharedWebhookKeys } from './webhook-keys.ts';
import { applicationKind, endpointKind, type KindOfWebhooks, subscriptionKind } from './webhook-kinds.ts';
import { type WebhookChange, webhookChangeKey } from './webhook-notes.ts';
import { WebhookScripts } from './webhook-scripts.ts';
import type { WebhookApplication, WebhookEndpoint, WebhookSubscription } from './webhooks.ts';

export interface WebhookDirectoryOptions {
  /** For reads of what is not kept. */
  redis: RedisClient;
  /** For the changes alone, of at least `changeStreamBlockMs`; ended by `stop`. */
  blocking: RedisClient;
  prefix: string;
  clock: Clock;
  logger: Logger;
  /** Objects kept in memory; default 50,000. */
  maxEntries?: number;
}

/** A writer that dies between a write and its announcement does harm for so long at most. */
const keptMs = 60_000;

/**
 * Reads of the webhook store for workers: objects are kept until a change of them is announced, and for a minute at most. What is not there
 * is asked for anew every time. Rejects with UNAVAILABLE for what is not kept while Redis does not answer.
 */
export class WebhookDirectory {
  readonly #scripts: WebhookScripts;
  readonly #cache: RegistryCache;
  readonly #stream: ChangeStream;
  readonly #logger: Logger;
  readonly #listeners = new Set<(changeKey: string) => void>();

  constructor({ redis, blocking, prefix, clock, logger, maxEntries = 50_000 }: WebhookDirectoryOptions) {
    this.#scripts = new WebhookScripts({ redis, prefix });
    this.#cache = new RegistryCache(maxEntries, { keptMs, clock });
    this.#logger = logger;
    this.#stream = new ChangeStream({
      blocking,
      keys: sharedWebhookKeys(prefix),
      clock,
      logger,
      onChange: (changeKeys) => {
        for (const changeKey of changeKeys) this.#cache.invalidate(changeKey);
        for (const changeKey of changeKeys) this.#notify(changeKey);
      },
      onFlush: () => {
        this.#cache.flush();
        this.#notify('*');
      },
    });
  }

  /** Begins to follow the changes; Redis need not be up. */
  start(): void {
    this.#stream.start();
  }

  async stop(): Promise<void> {
    await this.#stream.stop();
  }

  application(org: string, id: string): Promise<WebhookApplication | null> {
    return this.#get(applicationKind, org, id, () => []);
  }

  endpoint(org: string, id: string): Promise<WebhookEndpoint | null> {
    return this.#get(endpointKind, org, id, ({ applicationId }) => [{ kind: 'application', id: applicationId }]);
  }

  subscription(org: string, id: string): Promise<WebhookSubscription | null> {
    return this.#get(subscriptionKind, org, id, ({ applicationId, endpointId, eventTypeId }) => [
      { kind: 'application', id: applicationId },
      { kind: 'endpoint', id: endpointId },
      { kind: 'eventType', id: eventTypeId },
    ]);
  }

  /**
   * Calls back after a change, with its change key (`webhookChangeKey`), or with `*` when any may have been missed. Answers the function
   * that ends it.
   */
  onChange(listener: (changeKey: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #get<T>(kind: KindOfWebhooks<T>, org: string, id: string, above: (object: T) => WebhookChange[]): Promise<T | null> {
    return this.#cache.get<T | null>(`${org} ${id}`, async () => {
      const [row] = await webhookRows(this.#scripts, kind, org, [id]);
      if (row == null) return { value: null, dependsOn: [], isCacheable: false };
      const changes: WebhookChange[] = [{ kind: kind.kind, id }, { kind: 'organization', id: org }, ...above(row.object)];
      return { value: row.object, dependsOn: changes.map(webhookChangeKey), isCacheable: true };
    });
  }

  #notify(changeKey: string): void {
    for (const listener of this.#listeners) {
      try {
        listener(changeKey);
      } catch (error) {
        this.#logger.error({ err: error, changeKey }, 'a listener of changes of webhook objects failed');
      }
    }
  }
}
