import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type Sink, startSink, unexpectedArrivals } from '../../hack/bench/lib/sink.ts';
import { type Installation, prepareInstallation, type Role } from '../../hack/chaos/installation.ts';
import { faultKinds, type NetworkFaults, startNetworkFaults } from '../../hack/chaos/network-faults.ts';
import { servesAgain } from '../../hack/chaos/serves-again.ts';
import { SteadySender } from '../../hack/chaos/steady-sender.ts';
import { checkShards } from '../../src/data/check/shard-check.ts';
import { eventually } from '../support/eventually.ts';

const deadlineMs = 60_000;
const shards = 2;

let sink: Sink;
let faults: NetworkFaults;
let installation: Installation;
let sender: SteadySender;

beforeAll(async () => {
  sink = await startSink();
  faults = await startNetworkFaults(() => 0.5);
  installation = await prepareInstallation({
    sinks: [sink],
    shards,
    redisArguments: ['--save', '', '--appendonly', 'yes'],
    lineOf: (role, { port }) => faults.lineOf(role, port),
  });
  for (const role of ['controller', 'api', 'ingest', 'delivery'] as const) await installation.start(role);
  sender = new SteadySender(installation.ingest, 50);
  sender.start();
  await servesAgain(sender, [sink], deadlineMs);
}, 120_000);
afterAll(async () => {
  await sender?.stop();
  await installation?.stop();
  await faults?.stop();
  sink?.close();
});

test.each(faultKinds)(
  'lines to Redis are disturbed (%s), and everything goes on after it',
  async (kind) => {
    const before = sender.sent.size;
    for (const role of ['ingest', 'delivery'] satisfies Role[])
      for (const stream of ['upstream', 'downstream'] as const) await faults.strike({ role, kind, stream, lastsMs: 1000 });
    expect(sender.sent.size).toBeGreaterThan(before);
    await servesAgain(sender, [sink], deadlineMs);
  },
  150_000,
);

test('after all of that nothing accepted is lost, nothing else has come, and each message is in one place', async () => {
  await sender.stop();
  await eventually(() => expect([...sender.accepted].filter((number) => !sink.arrivals.has(number))).toEqual([]), deadlineMs);
  const check = { redis: installation.redis.client, prefix: installation.prefix, shards };
  await eventually(async () => expect(await checkShards(check)).toMatchObject({ unfinished: 0, findings: [] }), deadlineMs);
  expect(unexpectedArrivals([sink], sender.sent)).toBe(0);
  expect([...sink.webhookIds.values()].filter((ids) => ids.size > 1)).toEqual([]);
}, 150_000);
