// Kills processes under load and proves that nothing is lost:
//   node hack/chaos/kill.ts [rounds] [--everysec] [--seed N] [--short]
// Each round kills (SIGKILL) the api, one of two workers, or Redis (same disk; appendfsync always unless --everysec), starts it again
// and goes on sending. At the end every accepted event must have arrived, each under one webhook-id, and `posthorn check` must have
// no findings. --short keeps no figures.
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { checkShards } from '../../src/data/shard-check.ts';
import { waitUntil } from '../../test/support/wait-until.ts';
import { ms, percentile, report } from '../bench/lib/report.ts';
import { startSink } from '../bench/lib/sink.ts';
import { startWorld, type World } from '../bench/lib/world.ts';
import { randomOf } from './random.ts';
import { SteadySender } from './steady-sender.ts';

const { values, positionals } = parseArgs({
  options: { everysec: { type: 'boolean' }, seed: { type: 'string' }, short: { type: 'boolean' } },
  allowPositionals: true,
});
const rounds = Number(positionals[0] ?? 200);
const seed = Number(values.seed ?? Date.now() % 1_000_000);
const random = randomOf(seed);
const fsync = values.everysec === true ? 'everysec' : 'always';
const perSecond = 200;
const slots = 128;

type Victim = 'api' | 'delivery' | 'redis';
const kills: Record<Victim, number> = { api: 0, delivery: 0, redis: 0 };

async function kill(world: World, victim: Victim): Promise<void> {
  kills[victim]++;
  switch (victim) {
    case 'api':
      world.programs.api?.signal('SIGKILL');
      await world.programs.api?.ended;
      return await world.startApi();
    case 'delivery': {
      const program = world.programs.deliveries.shift();
      program?.signal('SIGKILL');
      await program?.ended;
      await world.startDelivery();
      return;
    }
    case 'redis':
      await world.redis.kill('SIGKILL');
      await sleep(random() * 500);
      return await world.redis.start();
    default:
      victim satisfies never;
  }
}

console.log(`seed ${seed}`);
const sink = await startSink();
const world = await startWorld({
  lanes: [
    {
      slug: 'orders',
      urls: [sink.origin],
      destination: { retryPolicy: { maxRetries: 25, initialDelayMs: 100, maxDelayMs: 1000, backoffMultiplier: 2 } },
    },
  ],
  workers: 2,
  redisArguments: ['--save', '', '--appendonly', 'yes', '--appendfsync', fsync],
});
const sender = new SteadySender(`${world.api}${world.path('orders')}`, perSecond);
let failed = false;
try {
  sender.start();
  const victims: Victim[] = ['api', 'delivery', 'redis'];
  for (let round = 0; round < rounds; round++) {
    await sleep(300 + random() * 1200);
    await kill(world, victims[Math.floor(random() * victims.length)] ?? 'api');
  }
  await sleep(2000);
  await sender.stop();
  const missing = (): number => [...sender.accepted].filter((number) => !sink.arrivals.has(number)).length;
  await waitUntil('everything accepted to arrive', 180_000, () => (missing() === 0 ? true : undefined)).catch(() => undefined);
  const shard = { redis: world.redis.client, prefix: world.prefix };
  await waitUntil('the last message to be settled', 60_000, async () =>
    (await checkShards(shard)).unfinished === 0 ? true : undefined,
  ).catch(() => undefined);
  const unexpected = [...sink.arrivals.keys()].filter((number) => !sender.sent.has(number)).length;
  const duplicated = [...sink.arrivals.values()].reduce((sum, times) => sum + times - 1, 0);
  const changedIds = [...sink.webhookIds.values()].filter((ids) => ids.size > 1).length;
  const check = await checkShards(shard);
  const lost = missing();
  failed = lost + unexpected + changedIds + check.findings.length + check.unfinished > 0 || duplicated > rounds * slots * 2;
  report(values.short === true ? null : `kill-${fsync}`, `${rounds} kills at ${perSecond}/s, seed ${seed}, appendfsync ${fsync}`, [
    [
      'kills',
      Object.entries(kills)
        .map(([victim, times]) => `${victim} ${times}`)
        .join(', '),
    ],
    ['accepted / refused / unanswered', `${sender.accepted.size} / ${sender.refused} / ${sender.unanswered}`],
    ['lost / unexpected / duplicated', `${lost} / ${unexpected} / ${duplicated}`],
    ['events under more than one webhook-id', String(changedIds)],
    ['findings of posthorn check, unfinished messages', `${check.findings.length}, ${check.unfinished}`],
    [
      'latency p50 / p99 / max',
      `${ms(percentile(sink.latenciesMs, 0.5))} / ${ms(percentile(sink.latenciesMs, 0.99))} / ${ms(percentile(sink.latenciesMs, 1))}`,
    ],
  ]);
} finally {
  await sender.stop();
  await world.stop();
  sink.close();
}
process.exitCode = failed ? 1 : 0;
