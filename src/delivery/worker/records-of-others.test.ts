import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { deliverySuite } from '../../../test/support/delivery-suite.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { destinationRecord, organizationRecord, routeRecord } from '../../../test/support/records.ts';
import { newTimedId } from '../../core/ids.ts';
import { recordLayoutVersion } from '../../core/records.ts';

const suite = deliverySuite();

async function send(): Promise<void> {
  const targets = [{ messageId: newTimedId('msg_', 0, Date.now()), routeId: 'rte_a', destinationId: 'dst_a', shard: 0, maxAttempts: 3 }];
  await suite.acceptor.accept({ ...newEvent({ org: 'org_a', targets }), id: newTimedId('evt_', 0, Date.now()) });
}

const transform = {
  v: recordLayoutVersion,
  id: 'trf_a',
  slug: 't',
  name: 't',
  type: 'javascript',
  code: 'function transform() { return { taken: true }; }',
  enabled: true,
  generation: 1,
} as const;

test.each(['destination', 'transform'] as const)(
  'events wait while the %s that their route names is a record of another organization, and go out with their own',
  async (kind) => {
    const foreign = await suite.receiver();
    const own = await suite.receiver();
    suite.registry.put('organization', organizationRecord());
    suite.registry.put('organization', organizationRecord({ id: 'org_b' }));
    suite.registry.put('route', routeRecord(kind === 'transform' ? { transformId: 'trf_a' } : {}));
    const isDestination = kind === 'destination';
    suite.registry.put(
      'destination',
      destinationRecord({ url: isDestination ? foreign.url : own.url }, isDestination ? { org: 'org_b' } : {}),
    );
    if (!isDestination) suite.registry.put('transform', { ...transform, org: 'org_b' } as never);
    suite.worker();
    await send();
    await sleep(1000);
    expect([foreign.requests.length, own.requests.length]).toEqual([0, 0]);
    if (isDestination) suite.registry.put('destination', destinationRecord({ url: own.url }, { generation: 2 }));
    else suite.registry.put('transform', { ...transform, org: 'org_a' } as never);
    await eventually(() => expect(own.requests.length).toBe(1));
    expect(foreign.requests.length).toBe(0);
  },
);

test('events of a route that is a record of another organization do not go out', async () => {
  const receiver = await suite.receiver();
  suite.registry.put('organization', organizationRecord());
  suite.registry.put('destination', destinationRecord({ url: receiver.url }));
  suite.registry.put('route', routeRecord({ org: 'org_b' }));
  suite.worker();
  await send();
  await sleep(1000);
  expect(receiver.requests.length).toBe(0);
});
