// Kills processes under load and proves that nothing is lost:
//   node hack/chaos/kill.ts [rounds] [--everysec] [--seed N] [--short]
// Each round kills (SIGKILL) the api, one of two workers, the controller, or Redis (same disk; appendfsync always unless --everysec),
// starts it again and goes on sending events for three destinations over four shards. At the end every accepted event must have
// arrived at each of them (with --everysec what is lost is only counted), under one webhook-id each, again only what was in flight at
// the kill of a worker or of Redis, and `posthorn check` must have no findings. --short keeps no figures.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { checkShards } from '../../src/data/shard-check.ts';
import { freePort } from '../../test/support/ports.ts';
import { type Program, startProgram } from '../../test/support/program.ts';
import { startRedis } from '../../test/support/redis.ts';
import { waitUntil } from '../../test/support/wait-until.ts';
import { ms, percentile, report } from '../bench/lib/report.ts';
import { type Behaviour, changedWebhookIds, startSink, unexpectedArrivals } from '../bench/lib/sink.ts';
import { InFlight } from './in-flight.ts';
import { randomOf } from './random.ts';
import { routesTo } from './routes.ts';
import { SteadySender } from './steady-sender.ts';
import { untilSettled } from './until-settled.ts';

const { values, positionals } = parseArgs({
  options: { everysec: { type: 'boolean' }, seed: { type: 'string' }, short: { type: 'boolean' } },
  allowPositionals: true,
});
const rounds = Number(positionals[0] ?? 200);
const seed = Number(values.seed ?? Date.now() % 1_000_000);
const random = randomOf(seed);
const fsync = values.everysec === true ? 'everysec' : 'always';
const perSecond = 100;
const shards = 4;
const prefix = 'posthorn:';
const built = new URL('../../dist/cmd/posthorn.js', import.meta.url).pathname;

const victims = ['api', 'delivery', 'controller', 'redis'] as const;
const kills = new Map<string, number>(victims.map((victim) => [victim, 0]));

console.log(`seed ${seed}`);
execFileSync('npm', ['run', '--silent', 'build'], { stdio: 'inherit' });
const directory = mkdtempSync(join(tmpdir(), 'posthorn-kill-'));
const inFlight = new InFlight({ prefix, shards });
const receive: Behaviour = ({ headers }, response) => {
  inFlight.received(String(headers['webhook-id']));
  response.end();
};
const sinks = await Promise.all([startSink(receive), startSink(receive), startSink(receive)]);
const redis = await startRedis(['--save', '', '--appendonly', 'yes', '--appendfsync', fsync]);
const [, disk = ''] = (await redis.client.config('GET', 'dir')) as string[];
const port = await freePort();
const origin = `http://127.0.0.1:${port}`;
const key = `ph_${'k'.repeat(52)}`;
const common = {
  POSTHORN_HOST: '127.0.0.1',
  POSTHORN_REDIS_URL: redis.url,
  POSTHORN_REDIS_MEMORY_LIMIT: '4gb',
  POSTHORN_RESOURCE_STORE: 'redis',
  POSTHORN_ENCRYPTION_KEYS: `k1:${Buffer.alloc(32, 1).toString('base64')}`,
  POSTHORN_EGRESS_ALLOWED_CIDRS: '127.0.0.0/8',
  POSTHORN_SHARDS: String(shards),
  POSTHORN_LOG_LEVEL: 'error',
  POSTHORN_PORT: String(port),
};

/** Standalone makes the organization and the resources; then the roles go on by themselves, so that nobody waits to start them again. */
async function prepare(): Promise<void> {
  const standalone = startProgram(['standalone'], { ...common, POSTHORN_DATA_DIR: directory, POSTHORN_API_KEY: key }, built);
  try {
    await standalone.waitForOutput(/^posthorn ready/m, 60_000);
    await routesTo(sinks, { origin, key });
  } finally {
    await standalone.stop();
  }
}

type Role = Exclude<(typeof victims)[number], 'redis'>;
const programs: Record<Role, Program[]> = { api: [], delivery: [], controller: [] };
let startedWorkers = 0;

async function start(role: Role): Promise<void> {
  programs[role].push(startProgram([role], { ...common, POSTHORN_OPS_PORT: String(await freePort()) }, built));
  if (role === 'delivery') startedWorkers++;
}

async function kill(victim: (typeof victims)[number]): Promise<void> {
  kills.set(victim, (kills.get(victim) ?? 0) + 1);
  if (victim === 'redis') {
    await redis.kill('SIGKILL');
    return await inFlight.redisKilled(disk, sender.sent.size, async () => {
      await sleep(random() * 500);
      await redis.start();
    });
  }
  if (victim === 'delivery') await inFlight.workersCame(redis.client, startedWorkers);
  const program = programs[victim].shift();
  program?.signal('SIGKILL');
  await program?.ended;
  if (victim === 'delivery') await inFlight.workerKilled(redis.client, sender.sent.size);
  await start(victim);
}

const sender = new SteadySender(`${origin}/ingest/default/orders`, perSecond);
let failed = true;
try {
  await prepare();
  for (const role of ['controller', 'api', 'delivery', 'delivery'] as const) {
    await inFlight.workersCame(redis.client, startedWorkers);
    await start(role);
  }
  sender.start();
  for (let round = 0; round < rounds; round++) {
    await sleep(300 + random() * 1200);
    await kill(victims[Math.floor(random() * victims.length)] ?? 'api');
  }
  await sleep(3000);
  await sender.stop();
  const missing = (): number => [...sender.accepted].filter((number) => sinks.some(({ arrivals }) => !arrivals.has(number))).length;
  await waitUntil('everything accepted to arrive', 180_000, () => (missing() === 0 ? true : undefined)).catch(() => undefined);
  const installation = { redis: redis.client, prefix, shards };
  await untilSettled(installation, 60_000);
  const unexpected = unexpectedArrivals(sinks, sender.sent);
  const { inFlight: underWay, repeated, unexplained } = inFlight.count(sinks);
  const changedIds = changedWebhookIds(sinks);
  const check = await checkShards(installation);
  const lost = missing();
  const isBeyond = repeated > underWay || unexplained > 0;
  const wrong = unexpected + changedIds + check.findings.length + check.unfinished;
  failed = isBeyond || wrong > 0 || (fsync === 'always' && lost > 0);
  const latenciesMs = sinks.flatMap((sink) => sink.latenciesMs);
  report(
    failed || values.short === true ? null : `kill-${fsync}`,
    `${rounds} kills at ${perSecond}/s for 3 destinations, seed ${seed}, appendfsync ${fsync}`,
    [
      ['kills', [...kills].map(([victim, times]) => `${victim} ${times}`).join(', ')],
      ['accepted / refused / unanswered', `${sender.accepted.size} / ${sender.refused} / ${sender.unanswered}`],
      ['lost / unexpected / duplicated', `${lost} / ${unexpected} / ${repeated}`],
      ['in flight at the kills of workers and of Redis; duplicated without that', `${underWay}; ${unexplained}`],
      ['events under more than one webhook-id at a destination', String(changedIds)],
      ['findings of posthorn check, unfinished messages', `${check.findings.length}, ${check.unfinished}`],
      [
        'latency p50 / p99 / max',
        `${ms(percentile(latenciesMs, 0.5))} / ${ms(percentile(latenciesMs, 0.99))} / ${ms(percentile(latenciesMs, 1))}`,
      ],
    ],
  );
} finally {
  await sender.stop();
  for (const program of Object.values(programs).flat()) await program.stop();
  await redis.stop();
  for (const sink of sinks) sink.close();
  rmSync(directory, { recursive: true, force: true });
}
process.exitCode = failed ? 1 : 0;
