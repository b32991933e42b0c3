import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { IngestUnderTest } from '../../test/support/ingest.ts';
import { destinationRecord } from '../../test/support/records.ts';

let ingest: IngestUnderTest;
beforeAll(async () => {
  ingest = await IngestUnderTest.start();
});
afterAll(() => ingest.stop());
beforeEach(async () => {
  await ingest.reset();
  await ingest.publishSource();
});

const send = (headers: Record<string, string>) => ingest.send('/ingest/acme/github', { headers });
/** How many seconds after its receipt, or its time, each message expires; undefined: never. */
const seconds = (): (number | undefined)[] =>
  (ingest.kept.events[0]?.targets ?? []).map(({ expiresAtMs }) => {
    const { notBeforeMs, receivedAtMs = 0 } = ingest.kept.events[0] ?? {};
    return expiresAtMs === undefined ? undefined : (expiresAtMs - (notBeforeMs ?? receivedAtMs)) / 1000;
  });

test('a message expires by the header of its event or by its destination, whichever is earlier', async () => {
  for (const [id, expiresAfterSeconds] of [['dst_short', 60], ['dst_long', 600], ['dst_never']] as const) {
    const fields = { id, ...(expiresAfterSeconds !== undefined && { expiresAfterSeconds }) };
    await ingest.publisher.publish(ingest.epoch, 'destination', destinationRecord({ url: 'https://d.example/' }, fields));
  }
  await ingest.publishRoute({ destinations: ['dst_short', 'dst_long', 'dst_never', 'dst_unknown'].map((id) => ({ id, shard: 0 })) });
  expect((await send({})).status).toBe(200);
  expect(seconds()).toEqual([60, 600, undefined, undefined]);
  ingest.kept.events.length = 0;
  expect((await send({ 'X-Posthorn-Expires-After-Seconds': '300' })).status).toBe(200);
  expect(seconds()).toEqual([60, 300, 300, 300]);
  expect(ingest.kept.events[0]?.headers.map(([name]) => name)).not.toContain('x-posthorn-expires-after-seconds');
});

test('the time of a scheduled event counts from its delivery time', async () => {
  await ingest.publishRoute();
  const headers = { 'x-posthorn-expires-after-seconds': '30', 'x-posthorn-delay-seconds': '3600' };
  expect((await send(headers)).status).toBe(200);
  const [target] = ingest.kept.events[0]?.targets ?? [];
  expect(target?.notBeforeMs).toBeGreaterThan(Date.now() + 3_000_000);
  expect(seconds()).toEqual([30]);
});

test.each(['0', '-1', '2592001', '1.5', '5 minutes', ''])(
  'the header with %j is 400 with the field in the details, and nothing is stored',
  async (text) => {
    await ingest.publishRoute();
    expect(await send({ 'x-posthorn-expires-after-seconds': text })).toMatchObject({
      status: 400,
      headers: { 'x-error-code': 'VALIDATION_FAILED' },
      body: {
        code: 'VALIDATION_FAILED',
        message: 'The header x-posthorn-expires-after-seconds must be a whole number from 1 to 2592000',
      },
    });
    expect(ingest.kept.events).toEqual([]);
  },
);
