import { expect, test } from '@jest/globals';
import { clusterSuite } from '../../test/support/cluster-suite.ts';
import { eventually } from '../../test/support/eventually.ts';
import { lenientClock } from '../../test/support/lenient-clock.ts';
import { lenientSandbox } from '../../test/support/lenient-sandbox.ts';
import { silentLogger } from '../../test/support/logger.ts';
import { newEvent } from '../../test/support/new-event.ts';
import { dead, settleAll, takeFrom } from '../../test/support/queue-worker.ts';
import { RecordRegistry } from '../../test/support/record-registry.ts';
import { organizationRecord, routeRecord, sourceRecord } from '../../test/support/records.ts';
import { carryOn, replayParts, replayRecord } from '../../test/support/replays.ts';
import { newWebhookEndpoint } from '../../test/support/webhooks.ts';
import { newTimedId } from '../core/ids.ts';
import { webhookOrganization } from '../core/webhook.ts';
import { AlertStates } from '../data/alerts/alert-states.ts';
import { RedisMessageReader } from '../data/history/message-reader.ts';
import { RedisIntake } from '../data/intake/intake.ts';
import { QuotaSteps } from '../data/intake/quota-steps.ts';
import { Circuits } from '../data/queue/circuits.ts';
import { RedisMessageAcceptor } from '../data/queue/message-acceptor.ts';
import { OwnEventLog } from '../data/queue/own-event-log.ts';
import { RedisDeliveryQueue } from '../data/queue/redis-delivery-queue.ts';
import { ownSourcesKey } from '../data/registry/own-sources.ts';
import { registryKeys } from '../data/registry/registry-keys.ts';
import { RedisWebhookStore } from '../data/webhooks/redis-webhook-store.ts';
import { acceptOwnEvent } from '../ingest/accept-own-event.ts';
import { systemClock } from '../runtime/system-clock.ts';
import { Notifier } from './notifier.ts';

const prefix = 'test:';
const shards = 6;
const suite = clusterSuite();

test('on a Redis Cluster what happens in each shard becomes one own event for the targets of another shard', async () => {
  const { redis } = suite;
  const registry = new RecordRegistry();
  registry.put('organization', organizationRecord());
  registry.put('source', sourceRecord({ id: 'src_own', slug: 'posthorn', provider: 'posthorn' }));
  registry.put('route', routeRecord({ id: 'rte_ops', sourceId: 'src_own', destinations: [{ id: 'dst_ops', shard: 5 }] }));
  const shared = { redis, prefix, shards: () => shards };
  const acceptor = new RedisMessageAcceptor({ ...shared, clock: lenientClock });
  const reader = new RedisMessageReader(shared);
  const sandbox = lenientSandbox();
  const notifiers = ['a', 'b'].map(
    (name) =>
      new Notifier({
        states: new AlertStates({ redis, prefix }),
        acceptor,
        acceptOwn: (event, signal) => acceptOwnEvent({ registry, acceptor, sandbox, logger: silentLogger }, event, signal),
        registry,
        messages: reader,
        circuits: new Circuits(shared),
        shards,
        reader: name,
        clock: systemClock,
        logger: silentLogger,
      }),
  );
  const notes = new OwnEventLog({ redis, prefix });
  for (let shard = 0; shard < shards; shard++) {
    const queue = new RedisDeliveryQueue({ redis, prefix, shard });
    for (const org of ['org_a', webhookOrganization('org_a')]) {
      const [id, messageId] = [newTimedId('evt_', shard, Date.now()), newTimedId('msg_', shard, Date.now())];
      const target = { messageId, routeId: `rte_${shard}`, destinationId: `dst_${shard}`, shard, maxAttempts: 1 };
      await acceptor.accept({ ...newEvent({ id, org }), targets: [target] });
    }
    await settleAll(queue, 'w', await takeFrom(queue, 'w', 2, { hasOwnEvents: true }), dead);
    await settleAll(queue, 'w', await takeFrom(queue, 'w', 2, { hasOwnEvents: true }), dead);
    const target = { shard, org: webhookOrganization('org_a'), routeId: `rte_${shard}`, destinationId: `dst_${shard}` };
    for (const number of [1, 1]) await notes.note({ ...target, kind: 'disabled', number, messageId: 'msg_none', reason: 'gone' });
    for (const notifier of notifiers) notifier.wake(shard);
  }
  const runs = replayParts(redis, { prefix, shards, hasOwnSource: true });
  expect(await carryOn(runs.steps, replayRecord({ isDryRun: true }))).toBe('ended');
  const quotaSteps = new QuotaSteps({ redis, prefix, registry, shards: () => shards, logger: silentLogger });
  const intake = new RedisIntake({ redis, prefix, clock: systemClock, quotaSteps });
  const claim = { org: 'org_a', receivedAtMs: Date.now(), marks: [], windowMs: 0, messages: 2, monthlyMessages: 2 };
  await intake.claim({ ...claim, eventId: newTimedId('evt_', 0, Date.now()) });
  await redis.sadd(registryKeys(prefix).index(ownSourcesKey('org_a')), 'src_own');
  const webhooks = new RedisWebhookStore({ ...shared, clock: systemClock, logger: silentLogger });
  const { id: applicationId } = await webhooks.createApplication({ org: 'org_a', name: 'Customer', shard: 0 });
  const { id: endpointId, secret } = await webhooks.createEndpoint(newWebhookEndpoint(applicationId));
  await webhooks.updateEndpoint('org_a', endpointId, { secret: { ...secret, sealed: 'sealed anew', version: 2 } });
  const found = () => reader.events('org_a', { sourceId: 'src_own' }, { limit: 100 });
  await eventually('three events of each shard, and four of the organization', 30_000, async () => {
    for (let shard = 0; shard < shards; shard++) for (const notifier of notifiers) notifier.wake(shard);
    return (await found()).items.length === 3 * shards + 4;
  });
  await eventually(async () => {
    const { items } = await reader.deliveries('org_a', { routeId: 'rte_ops' }, { limit: 100 });
    expect(items).toHaveLength(3 * shards + 4);
  });
  for (const notifier of notifiers) await notifier.stop();
  sandbox.close();
  const events = await Promise.all((await found()).items.map(({ id }) => reader.event('org_a', id)));
  const types = events.map((event) => JSON.parse(event?.payload?.toString() ?? '').type).sort();
  expect(types).toEqual([
    ...Array(shards).fill('endpoint.disabled'),
    ...Array(2 * shards).fill('message.dead_lettered'),
    ...Array(2).fill('quota.reached'),
    'replay.finished',
    'secret.rotated',
  ]);
});
