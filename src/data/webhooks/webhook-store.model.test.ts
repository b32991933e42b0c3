import { afterAll, beforeAll, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { allPages } from '../../../test/support/all-pages.ts';
import { silentLogger } from '../../../test/support/logger.ts';
import { assertProperty } from '../../../test/support/property.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { newWebhookEndpoint } from '../../../test/support/webhooks.ts';
import { isPosthornError } from '../../core/errors.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { checkWebhooks } from '../check/webhook-check.ts';
import { registryKeys } from '../registry/registry-keys.ts';
import { RedisWebhookStore } from './redis-webhook-store.ts';
import type { WebhookApplication, WebhookEndpoint, WebhookSubscription } from './webhooks.ts';

const org = 'org_a';
const prefix = 'test:';
const eventTypes = ['etp_a', 'etp_b', 'etp_c', 'etp_d'];
const externalIds = ['x', 'y', 'z'];
const transforms = ['trf_a', 'trf_b'];

type Step =
  | { do: 'makeApplication' | 'upsert'; external: number; name: string }
  | { do: 'changeApplication'; pick: number; external: number; name: string }
  | { do: 'makeEndpoint' | 'disable' | 'deleteApplication' | 'deleteEndpoint' | 'deleteSubscription'; pick: number }
  | { do: 'subscribe'; pick: number; types: number[] }
  | { do: 'transform'; pick: number; transform: number }
  | { do: 'deleteEventType' | 'admitEventType' | 'retire'; pick: number };

const pick = fc.nat({ max: 1000 });
const name = fc.constantFrom('Alpha', 'beta', 'Gamma', 'delta');
const external = fc.nat({ max: externalIds.length });
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('makeApplication' as const, 'upsert' as const), external, name }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('changeApplication' as const), pick, external, name }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('makeEndpoint' as const), pick }) },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('subscribe' as const),
      pick,
      types: fc.array(fc.nat({ max: eventTypes.length - 1 }), { minLength: 1, maxLength: 5 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constantFrom('disable' as const, 'deleteApplication' as const, 'deleteEndpoint' as const, 'deleteSubscription' as const),
      pick,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('transform' as const), pick, transform: fc.nat({ max: transforms.length }) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constantFrom('deleteEventType' as const, 'admitEventType' as const, 'retire' as const),
      pick,
    }),
  },
);

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

/** Runs steps on the store; beside it, the same with plain lists, oldest first. */
class Run {
  readonly store = new RedisWebhookStore({ redis: redis.client, prefix, clock: systemClock, logger: silentLogger });
  applications: WebhookApplication[] = [];
  endpoints: WebhookEndpoint[] = [];
  subscriptions: WebhookSubscription[] = [];
  /** Event types and transforms that no subscription may name. */
  readonly gone = new Set<string>();

  async take(step: Step): Promise<void> {
    const { store } = this;
    switch (step.do) {
      case 'makeApplication': {
        const externalId = externalIds[step.external] ?? null;
        const made = await conflictOr(store.createApplication({ org, name: step.name, shard: 0, externalId }));
        expect(made === null).toBe(externalId !== null && this.applications.some((other) => other.externalId === externalId));
        if (made !== null) this.applications.push(made);
        return;
      }
      case 'upsert': {
        const externalId = externalIds[step.external] ?? 'w';
        const { application, created } = await store.upsertApplication({ org, name: step.name, shard: 0, externalId });
        const known = this.applications.findIndex((other) => other.externalId === externalId);
        expect(created).toBe(known < 0);
        expect(application.name).toBe(step.name);
        if (known < 0) this.applications.push(application);
        else this.applications[known] = application;
        return;
      }
      case 'changeApplication': {
        const at = step.pick % Math.max(1, this.applications.length);
        const chosen = this.applications[at];
        if (chosen === undefined) return;
        const externalId = externalIds[step.external] ?? null;
        const changed = await conflictOr(store.updateApplication(org, chosen.id, { externalId, name: step.name }));
        const isTaken = externalId !== null && this.applications.some((other) => other !== chosen && other.externalId === externalId);
        expect(changed === null).toBe(isTaken);
        if (changed === null) return;
        expect(changed).toMatchObject({
          ...chosen,
          externalId,
          name: step.name,
          updatedAtMs: changed.updatedAtMs,
          revision: changed.revision,
        });
        this.applications[at] = changed;
        return;
      }
      case 'makeEndpoint': {
        const application = picked(this.applications, step.pick);
        if (application !== undefined) this.endpoints.push(await store.createEndpoint(newWebhookEndpoint(application.id)));
        return;
      }
      case 'subscribe': {
        const endpoint = picked(this.endpoints, step.pick);
        if (endpoint === undefined) return;
        const wanted = step.types.map((type) => eventTypes[type] ?? '');
        const transformId = transforms[step.pick % (transforms.length + 1)] ?? null;
        const subscribed = this.subscriptions.filter(({ endpointId }) => endpointId === endpoint.id).map(({ eventTypeId }) => eventTypeId);
        const fresh = [...new Set(wanted)].filter((type) => !subscribed.includes(type));
        const making = store.createSubscriptions({ org, endpointId: endpoint.id, transformId }, wanted);
        if (fresh.some((type) => this.gone.has(type))) return await expect(making).rejects.toMatchObject({ code: 'RESOURCE_NOT_FOUND' });
        if (fresh.length > 0 && this.gone.has(transformId ?? '')) return await expect(making).rejects.toMatchObject({ code: 'CONFLICT' });
        const { created, skipped } = await making;
        expect(created.map(({ eventTypeId }) => eventTypeId)).toEqual(fresh);
        expect(skipped).toBe(wanted.length - fresh.length);
        this.subscriptions.push(...created);
        return;
      }
      case 'disable': {
        const at = step.pick % Math.max(1, this.endpoints.length);
        const chosen = this.endpoints[at];
        if (chosen !== undefined) this.endpoints[at] = await store.updateEndpoint(org, chosen.id, { isDisabled: !chosen.isDisabled });
        return;
      }
      case 'deleteApplication': {
        const gone = picked(this.applications, step.pick);
        if (gone === undefined) return;
        await store.deleteApplication(org, gone.id);
        this.applications = this.applications.filter(({ id }) => id !== gone.id);
        this.endpoints = this.endpoints.filter(({ applicationId }) => applicationId !== gone.id);
        this.subscriptions = this.subscriptions.filter(({ applicationId }) => applicationId !== gone.id);
        return;
      }
      case 'deleteEndpoint': {
        const gone = picked(this.endpoints, step.pick);
        if (gone === undefined) return;
        await store.deleteEndpoint(org, gone.id);
        this.endpoints = this.endpoints.filter(({ id }) => id !== gone.id);
        this.subscriptions = this.subscriptions.filter(({ endpointId }) => endpointId !== gone.id);
        return;
      }
      case 'deleteSubscription': {
        const gone = picked(this.subscriptions, step.pick);
        if (gone === undefined) return;
        await store.deleteSubscription(org, gone.id);
        this.subscriptions = this.subscriptions.filter(({ id }) => id !== gone.id);
        return;
      }
      case 'deleteEventType': {
        const gone = picked(eventTypes, step.pick) ?? '';
        await store.deleteEventType(org, gone);
        this.gone.add(gone);
        this.subscriptions = this.subscriptions.filter(({ eventTypeId }) => eventTypeId !== gone);
        return;
      }
      case 'admitEventType': {
        const back = picked(eventTypes, step.pick) ?? '';
        await store.admitEventType(org, back);
        this.gone.delete(back);
        return;
      }
      case 'transform': {
        const at = step.pick % Math.max(1, this.subscriptions.length);
        const chosen = this.subscriptions[at];
        if (chosen === undefined) return;
        const transformId = transforms[step.transform] ?? null;
        const changed = await conflictOr(store.updateSubscription(org, chosen.id, { transformId }));
        expect(changed === null).toBe(transformId !== chosen.transformId && this.gone.has(transformId ?? ''));
        if (changed !== null) this.subscriptions[at] = changed;
        return;
      }
      case 'retire': {
        const transform = picked(transforms, step.pick) ?? '';
        const users = this.subscriptions.filter(({ transformId }) => transformId === transform).length;
        expect(await store.retireTransform(org, transform)).toBe(users);
        if (users === 0) this.gone.add(transform);
        return;
      }
      default:
        step satisfies never;
    }
  }

  async compare(): Promise<void> {
    const { store, applications, endpoints, subscriptions } = this;
    expect(await checkWebhooks({ redis: redis.client, prefix })).toEqual({
      applications: applications.length,
      endpoints: endpoints.length,
      subscriptions: subscriptions.length,
      findings: [],
    });
    expect(await allPages((page) => store.applications(org, {}, page), 3)).toEqual(applications.toReversed());
    const names = (await allPages((page) => store.applications(org, { orderBy: 'name', order: 'asc' }, page), 2)).map(({ name }) => name);
    expect(names).toEqual(
      applications.map(({ name }) => name).toSorted((one, other) => (one.toLowerCase() < other.toLowerCase() ? -1 : 1)),
    );
    expect(await allPages((page) => store.endpoints(org, { isDisabled: true }, page), 3)).toEqual(
      endpoints.filter(({ isDisabled }) => isDisabled).toReversed(),
    );
    for (const { id, externalId } of applications) {
      if (externalId !== null) expect((await store.applicationByExternalId(org, externalId))?.id).toBe(id);
      expect(await allPages((page) => store.endpoints(org, { applicationId: id }, page), 2)).toEqual(
        endpoints.filter(({ applicationId }) => applicationId === id).toReversed(),
      );
      const own = await allPages((page) => store.subscriptions(org, { applicationId: id }, page), 2);
      expect(sortedIds(own)).toEqual(sortedIds(subscriptions.filter(({ applicationId }) => applicationId === id)));
    }
    for (const { id } of endpoints) {
      expect(await allPages((page) => store.subscriptions(org, { endpointId: id }, page), 2)).toEqual(
        subscriptions.filter(({ endpointId }) => endpointId === id).toReversed(),
      );
    }
    for (const type of eventTypes) {
      expect(await allPages((page) => store.subscriptions(org, { eventTypeId: type }, page), 2)).toEqual(
        subscriptions.filter(({ eventTypeId }) => eventTypeId === type).toReversed(),
      );
    }
    const endpointIds = endpoints.map(({ id }) => id);
    expect(await store.endpointsById(org, endpointIds)).toEqual(new Map(endpoints.map((endpoint) => [endpoint.id, endpoint])));
    expect(await store.subscriptionCounts(org, eventTypes)).toEqual(
      new Map(eventTypes.map((type) => [type, subscriptions.filter(({ eventTypeId }) => eventTypeId === type).length])),
    );
    const uses = Map.groupBy(
      subscriptions.flatMap(({ transformId }) => transformId ?? []),
      (id) => id,
    );
    const counts = Object.fromEntries([...uses].map(([id, all]) => [id, String(all.length)]));
    expect(await redis.client.hgetall(`${prefix}{wh:${org}}:tf`)).toEqual(counts);
    expect(await store.subscriptionCountsOfEndpoints(org, endpointIds)).toEqual(
      new Map(endpointIds.map((id) => [id, subscriptions.filter(({ endpointId }) => endpointId === id).length])),
    );
  }

  /** What everything took is given back. */
  async empty(): Promise<void> {
    for (const { id } of this.applications) await this.store.deleteApplication(org, id);
    for (const type of eventTypes) await this.store.deleteEventType(org, type);
    const left = await redis.client.keys(`${prefix}*`);
    const { applications, endpoints, subscriptions } = await checkWebhooks({ redis: redis.client, prefix });
    expect([applications, endpoints, subscriptions]).toEqual([0, 0, 0]);
    const own = left.filter((key) => key.includes(`{wh:${org}}`));
    for (const key of own) expect(['ctl', 'v', 'gone', 'past', 'pt'].map((name) => `${prefix}{wh:${org}}:${name}`)).toContain(key);
  }
}

test('the store does what plain lists do, and keeps nothing of what is deleted', async () => {
  await assertProperty(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 60, size: 'max' }), async (steps) => {
      await redis.client.flushall();
      await redis.client.hset(registryKeys(prefix).records('organization'), org, '{}');
      const run = new Run();
      for (const [i, each] of steps.entries()) {
        await run.take(each);
        if (i % 10 === 9) await run.compare();
      }
      await run.compare();
      await run.empty();
    }),
    60,
  );
});

function picked<T>(all: readonly T[], pick: number): T | undefined {
  return all[pick % Math.max(1, all.length)];
}

function sortedIds(all: readonly { id: string }[]): string[] {
  return all.map(({ id }) => id).toSorted();
}

async function conflictOr<T>(promise: Promise<T>): Promise<T | null> {
  try {
    return await promise;
  } catch (error) {
    if (isPosthornError(error, 'CONFLICT')) return null;
    throw error;
  }
}
