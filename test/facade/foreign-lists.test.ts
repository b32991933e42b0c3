import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { webhookOrganization } from '../../src/core/webhook.ts';
import { RedisDeliveryQueue } from '../../src/data/queue/redis-delivery-queue.ts';
import { newEvent } from '../support/new-event.ts';
import { dead, settleEverything } from '../support/queue-worker.ts';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';

const victim = 'org_victim';
/** More than a page reads. */
const entries = 1010;

let world: FacadeWorld;
beforeAll(async () => {
  world = await startFacadeWorld();
  const queue = new RedisDeliveryQueue({ redis: world.redis.client, prefix: 'test:' });
  await queue.refreshShard('w1', 1000);
  const both = [
    { org: victim, sourceId: 'src_victim', route: 'rte_victim', destination: 'dst_victim' },
    { org: webhookOrganization(victim), sourceId: 'etp_victim', route: 'app_victim', destination: 'ep_victim' },
  ];
  for (const { org, sourceId, route, destination } of both) {
    for (let i = 0; i < entries; i++) {
      const event = newEvent({ org, sourceId, destinations: [destination] });
      await world.acceptor.accept({ ...event, targets: event.targets.map((target) => ({ ...target, routeId: route })) });
    }
    await settleEverything(queue, 'w1', dead);
  }
}, 120_000);
afterAll(() => world.stop());

const lists = [
  'events?sourceId=',
  'deliveries?routeId=',
  'deliveries?destinationId=',
  'deliveries?status=dlq&destinationId=',
  'outbound-messages?applicationId=',
  'outbound-messages?endpointId=',
  'outbound-messages?status=dlq&endpointId=',
  'outbound-messages/dlq/messages?applicationId=',
];
const ids = ['src_victim', 'etp_victim', 'rte_victim', 'dst_victim', 'app_victim', 'ep_victim'];
/** Texts after the `i:` of an index. */
const texts = [
  victim,
  `+${victim}`,
  ...['ev:', 'ev:+', 'dead:', 'dead:+', 'cp:', 'cp:+'].map((part) => part + victim),
  ...['fail:rte_victim', 'fail:app_victim'],
];

test.each(lists)('GET /%s<id or index of another organization> is 404, as of one that is not there', async (list) => {
  for (const value of [...ids, ...texts]) {
    const { status } = await world.request('GET', `/api/${list}${encodeURIComponent(value)}`);
    expect([value, status]).toEqual([value, 404]);
  }
});
