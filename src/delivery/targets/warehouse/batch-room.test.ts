import { expect, test } from '@jest/globals';
import { FakeClock } from '../../../../test/support/fake-clock.ts';
import { BatchRoom } from './batch-room.ts';

const room = (clock = new FakeClock()): BatchRoom => new BatchRoom({ places: 3, placesOfOrganization: 1, clock });

test('an organization that has its share waits, and others find room', async () => {
  const batches = room();
  const leave = await batches.enter('org_a');
  let hasEntered = false;
  const second = batches.enter('org_a').then((found) => {
    hasEntered = true;
    return found;
  });
  expect(await batches.enter('org_b')).not.toBeNull();
  expect(hasEntered).toBe(false);
  leave?.();
  expect(await second).not.toBeNull();
});

test('who finds no place within 10 s is told so, and takes none later', async () => {
  const clock = new FakeClock();
  const batches = room(clock);
  const leave = await batches.enter('org_a');
  const second = batches.enter('org_a');
  await clock.advance(10_001);
  expect(await second).toBeNull();
  leave?.();
  expect(await batches.enter('org_a')).not.toBeNull();
});
