import { afterAll, afterEach, beforeAll, beforeEach, expect } from '@jest/globals';
import { isDisabled } from '../../src/controllers/disabled.ts';
import { idOf } from '../../src/controllers/held-ids.ts';
import type { RunControllersOptions } from '../../src/controllers/run-controllers.ts';
import type { Clock } from '../../src/core/clock.ts';
import { RedisRegistryPublisher } from '../../src/data/registry/registry-publisher.ts';
import { RedisWebhookStore } from '../../src/data/webhooks/redis-webhook-store.ts';
import type { ConfigurationKind, ObjectOf } from '../../src/resources/kinds.ts';
import { systemClock } from '../../src/runtime/system-clock.ts';
import { MemoryStore } from '../../src/store/memory/memory-store.ts';
import { type RunningControllers, startControllers } from './controllers.ts';
import { eventually } from './eventually.ts';
import { silentLogger } from './logger.ts';
import { type RedisServer, startRedis } from './redis.ts';

const namespace = 'acme';
export const signingSecret = (byte: number): string => `whsec_${Buffer.alloc(32, byte).toString('base64')}`;

/** Controllers with one organization, whose webhooks are declared. */
export class WebhookControllers {
  readonly store = new MemoryStore(systemClock);
  readonly webhooks: RedisWebhookStore;
  org = '';
  #controllers: RunningControllers | undefined;
  readonly #redis: RedisServer['client'];
  readonly #prefix: string;

  constructor({ redis, prefix }: { redis: RedisServer['client']; prefix: string }) {
    this.#redis = redis;
    this.#prefix = prefix;
    this.webhooks = new RedisWebhookStore({ redis, prefix, clock: systemClock, logger: silentLogger });
  }

  /** With the organization, an event type, an application and a Secret of one signing secret. */
  async begin(): Promise<void> {
    this.start();
    await this.store.apply(
      { kind: 'Organization', metadata: { name: namespace }, spec: { namespace, deletionPolicy: 'Delete' } },
      { manager: 'test' },
    );
    await eventually(async () => {
      const { status } = await this.store.get('Organization', { name: namespace });
      this.org = status?.id ?? '';
      expect(this.org).not.toBe('');
      await this.store.get('Namespace', { name: namespace });
    });
    await this.apply('WebhookEventType', 'order.paid', { name: 'order.paid' });
    await this.apply('WebhookApplication', 'shop', {});
    await this.secret(signingSecret(1));
  }

  start(options: { clock?: Clock; webhooks?: RunControllersOptions['webhooks'] } = {}): void {
    this.#controllers = startControllers({ store: this.store, redis: this.#redis, prefix: this.#prefix, ...options });
  }

  async stop(): Promise<void> {
    await this.#controllers?.stop();
  }

  apply<K extends ConfigurationKind>(kind: K, name: string, spec: object, annotations: Record<string, string> = {}): Promise<ObjectOf<K>> {
    return this.store.apply({ kind, metadata: { namespace, name, annotations }, spec }, { manager: 'test', force: true });
  }

  /** The Secret `signing`, key `secret`. */
  async secret(value: string): Promise<void> {
    const data = { secret: Buffer.from(value).toString('base64') };
    await this.store.apply({ kind: 'Secret', metadata: { namespace, name: 'signing' }, data }, { manager: 'test', force: true });
  }

  delete(kind: ConfigurationKind, name: string): Promise<unknown> {
    return this.store.delete(kind, { namespace, name });
  }

  /** The object once the controllers have seen what was written last, with this reason in its condition Ready; by default that of an object which is in force. */
  seen<K extends ConfigurationKind>(kind: K, name: string, reason?: string): Promise<ObjectOf<K>> {
    return eventually(async () => {
      const object = await this.store.get(kind, { namespace, name });
      expect(object.status?.observedGeneration).toBe(object.metadata.generation);
      expect(conditionOf(object, 'Ready')).toMatchObject({ reason: reason ?? (isDisabled(object) ? 'Disabled' : 'Ready') });
      return object;
    });
  }

  /** Whether or not the controllers have seen the object. */
  async idOf(kind: ConfigurationKind, name: string): Promise<string> {
    return idOf(kind, await this.store.get(kind, { namespace, name }));
  }
}

export function conditionOf<K extends ConfigurationKind>({ status }: ObjectOf<K>, type: string) {
  return status?.conditions?.find((each) => each.type === type);
}

/** Registers the hooks of the suite that calls it: one Redis, and for each test new controllers under a prefix of their own. */
export function eachWithWebhookControllers(
  begun: (made: { redis: RedisServer; prefix: string; world: WebhookControllers; registry: RedisRegistryPublisher }) => unknown,
): void {
  let redis: RedisServer;
  let world: WebhookControllers;
  let runs = 0;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());
  beforeEach(async () => {
    const prefix = `run${++runs}:`;
    world = new WebhookControllers({ redis: redis.client, prefix });
    await world.begin();
    await begun({ redis, prefix, world, registry: new RedisRegistryPublisher(redis.client, prefix) });
  });
  afterEach(() => world.stop());
}
