// Kills processes under load and proves that nothing is lost:
//   node hack/chaos/kill.ts [rounds] [--everysec] [--seed N] [--short]
// Each round kills (SIGKILL) the api, one of two workers, the controller, or Redis (same disk; appendfsync always unless --everysec),
// starts it again and goes on sending events for three destinations over four shards. At the end every accepted event must have
// arrived at each of them, under one webhook-id each, and `posthorn check` must have no findings. --short keeps no figures.
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
import { startSink } from '../bench/lib/sink.ts';
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
const perSecond = 100;
const slots = 128;
const shards = 4;
const built = new URL('../../dist/cmd/posthorn.js', import.meta.url).pathname;

const victims = ['api', 'delivery', 'controller', 'redis'] as const;
const kills = new Map<string, number>(victims.map((victim) => [victim, 0]));

console.log(`seed ${seed}`);
execFileSync('npm', ['run', '--silent', 'build'], { stdio: 'inherit' });
const directory = mkdtempSync(join(tmpdir(), 'posthorn-kill-'));
const sinks = await Promise.all([startSink(), startSink(), startSink()]);
const redis = await startRedis(['--save', '', '--appendonly', 'yes', '--appendfsync', fsync]);
const port = await freePort();
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
  await standalone.waitForOutput(/^posthorn ready/m, 60_000);
  await configure();
  await standalone.stop();
}

const startRole = async (role: string): Promise<Program> =>
  startProgram([role], { ...common, POSTHORN_OPS_PORT: String(await freePort()) }, built);
const programs: Record<Exclude<(typeof victims)[number], 'redis'>, Program[]> = { api: [], delivery: [], controller: [] };

async function kill(victim: (typeof victims)[number]): Promise<void> {
  kills.set(victim, (kills.get(victim) ?? 0) + 1);
  if (victim === 'redis') {
    await redis.kill('SIGKILL');
    await sleep(random() * 500);
    return await redis.start();
  }
  const program = programs[victim].shift();
  program?.signal('SIGKILL');
  await program?.ended;
  programs[victim].push(await startRole(victim));
}

async function configure(): Promise<void> {
  const create = async (path: string, body: object): Promise<string> => {
    const headers = { 'x-api-key': key, 'content-type': 'application/json' };
    const answer = await fetch(`http://127.0.0.1:${port}/api/${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
    if (answer.status !== 201) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return ((await answer.json()) as { id: string }).id;
  };
  const sourceId = await create('sources', { name: 'Orders', provider: 'generic' });
  for (const [i, { origin: url }] of sinks.entries()) {
    const retryPolicy = { maxRetries: 25, initialDelay: 100, maxDelay: 1000, backoffMultiplier: 2 };
    const id = await create('destinations', { name: `Sink ${i}`, url, retryPolicy });
    await create('routes', { name: `Route ${i}`, sourceId, destinationIds: [id] });
  }
}

const sender = new SteadySender(`http://127.0.0.1:${port}/ingest/default/orders`, perSecond);
let failed = true;
try {
  await prepare();
  for (const role of ['controller', 'api', 'delivery', 'delivery'] as const) programs[role].push(await startRole(role));
  sender.start();
  for (let round = 0; round < rounds; round++) {
    await sleep(300 + random() * 1200);
    await kill(victims[Math.floor(random() * victims.length)] ?? 'api');
  }
  await sleep(3000);
  await sender.stop();
  const missing = (): number => [...sender.accepted].filter((number) => sinks.some(({ arrivals }) => !arrivals.has(number))).length;
  await waitUntil('everything accepted to arrive', 180_000, () => (missing() === 0 ? true : undefined)).catch(() => undefined);
  const installation = { redis: redis.client, prefix: 'posthorn:', shards };
  await waitUntil('the last message to be settled', 60_000, async () =>
    (await checkShards(installation)).unfinished === 0 ? true : undefined,
  ).catch(() => undefined);
  const unexpected = sinks.flatMap(({ arrivals }) => [...arrivals.keys()]).filter((number) => !sender.sent.has(number)).length;
  const duplicated = sinks.flatMap(({ arrivals }) => [...arrivals.values()]).reduce((sum, times) => sum + times - 1, 0);
  const changedIds = sinks.flatMap(({ webhookIds }) => [...webhookIds.values()]).filter((ids) => ids.size > 1).length;
  const check = await checkShards(installation);
  const lost = missing();
  failed = lost + unexpected + changedIds + check.findings.length + check.unfinished > 0 || duplicated > rounds * slots * 2;
  const latenciesMs = sinks.flatMap((sink) => sink.latenciesMs);
  report(
    values.short === true ? null : `kill-${fsync}`,
    `${rounds} kills at ${perSecond}/s for 3 destinations, seed ${seed}, appendfsync ${fsync}`,
    [
      ['kills', [...kills].map(([victim, times]) => `${victim} ${times}`).join(', ')],
      ['accepted / refused / unanswered', `${sender.accepted.size} / ${sender.refused} / ${sender.unanswered}`],
      ['lost / unexpected / duplicated', `${lost} / ${unexpected} / ${duplicated}`],
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
