import { expect, test } from '@jest/globals';
import { startFacadeWorld } from './facade-world.ts';
import { describeDestinationTransfer } from './suites/destination-transfer.ts';

describeDestinationTransfer(() => startFacadeWorld());

test('1000 destinations with headers and credentials fit into one import', async () => {
  const world = await startFacadeWorld();
  try {
    const destinations = Array.from({ length: 1000 }, (_, i) => ({
      name: `Destination ${i}`,
      slug: `d-${i}`,
      url: `https://hooks.example.com/${'x'.repeat(500)}/${i}`,
      headers: { 'X-Long': 'y'.repeat(4000) },
      authType: 'bearer',
      authConfig: { token: `token-${i}`.padEnd(200, 'z') },
    }));
    const { status, body } = await world.request('POST', '/api/destinations/import', { body: { destinations, conflictStrategy: 'skip' } });
    expect([status, body.summary.imported]).toEqual([200, 1000]);
  } finally {
    await world.stop();
  }
});
