// Lets Redis fail over again and again, under load:
//   node hack/chaos/failover.ts [failovers] [--cluster] [--short]
// By Sentinel (a master with a replica, and three sentinels), or a Redis Cluster of three masters with a replica each. In each round a master that
// holds shards is killed (SIGKILL), its replica takes over, and the killed one comes back as the replica of the other. What the
// master had acknowledged and had not sent to its replica is lost with it: that is counted. Ends with 1 when one failover loses more than a second's
// events, when something arrives that was not sent or under a second webhook-id, or `posthorn check` has findings. --short keeps no figures.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { checkShards } from '../../src/data/check/shard-check.ts';
import type { RedisAddress } from '../../src/redis/address.ts';
import { commandConnection } from '../../src/redis/connection.ts';
import { createCertificateAuthority } from '../../test/support/certificate-authority.ts';
import { eventually } from '../../test/support/eventually.ts';
import { freePort } from '../../test/support/ports.ts';
import { startProgram } from '../../test/support/program.ts';
import { hasKey, type RedisGroup, type RedisNode, startRedisCluster, startRedisSentinel } from '../../test/support/redis-group.ts';
import { ms, percentile, report } from '../bench/lib/report.ts';
import { changedWebhookIds, repeatedArrivals, startSink, unexpectedArrivals } from '../bench/lib/sink.ts';
import { buildProgram, builtProgram } from '../lib/built-program.ts';
import { routesTo } from './routes.ts';
import { SteadySender } from './steady-sender.ts';
import { untilSettled } from './until-settled.ts';

const { values, positionals } = parseArgs({
  options: { cluster: { type: 'boolean' }, short: { type: 'boolean' } },
  allowPositionals: true,
});
const failovers = Number(positionals[0] ?? 10);
const perSecond = 100;
/** Shards of a Cluster are spread over all masters. */
const shards = values.cluster === true ? 16 : 4;
const patienceMs = 120_000;
/** Sentinels begin no failover sooner after the last one (twice their failover-timeout, and a little). */
const betweenKillsMs = values.cluster === true ? 0 : 22_000;

interface Servers {
  group: RedisGroup;
  address: RedisAddress;
  environment: Record<string, string>;
}

async function ofCluster(): Promise<Servers> {
  const group = await startRedisCluster();
  const url = `redis://${group.hosts}`;
  return { group, address: { mode: 'cluster', url }, environment: { POSTHORN_REDIS_URL: url, POSTHORN_REDIS_MODE: 'cluster' } };
}

async function ofSentinel(): Promise<Servers> {
  const users = readFileSync(new URL('../../config/redis/users.acl', import.meta.url), 'utf8');
  const group = await startRedisSentinel({ tls: { ...authority.issue(['127.0.0.1']), caFile: authority.file }, users });
  const url = `rediss://posthorn:change-me@${group.sentinels}`;
  return {
    group,
    address: { mode: 'sentinel', url, sentinel: { master: 'queue' }, tls: { ca: [readFileSync(authority.file, 'utf8')] } },
    environment: {
      POSTHORN_REDIS_URL: url,
      POSTHORN_REDIS_MODE: 'sentinel',
      POSTHORN_REDIS_SENTINEL_MASTER: 'queue',
      POSTHORN_REDIS_CA_FILE: authority.file,
    },
  };
}

buildProgram();
const directory = mkdtempSync(join(tmpdir(), 'posthorn-failover-'));
const authority = createCertificateAuthority();
const sinks = await Promise.all([startSink(), startSink(), startSink()]);
const { group, address, environment } = values.cluster === true ? await ofCluster() : await ofSentinel();
const origin = `http://127.0.0.1:${await freePort()}`;
const key = `ph_${'k'.repeat(52)}`;
const program = startProgram(
  ['standalone'],
  {
    POSTHORN_PORT: new URL(origin).port,
    POSTHORN_DATA_DIR: directory,
    POSTHORN_API_KEY: key,
    POSTHORN_SHARDS: String(shards),
    POSTHORN_LOG_LEVEL: 'error',
    ...environment,
    POSTHORN_REDIS_MEMORY_LIMIT: '4gb',
  },
  builtProgram,
);
const redis = commandConnection(address, { commandTimeoutMs: 30_000 });
redis.on('error', () => {});
const sender = new SteadySender(`${origin}/ingest/default/orders`, perSecond);

const mastersCount = values.cluster === true ? 3 : 1;

async function masters(): Promise<RedisNode[]> {
  return await eventually('servers to lead', patienceMs, async () => {
    const leading = await group.masters();
    return leading.length === mastersCount ? leading : undefined;
  });
}

const has = (node: RedisNode, shard: number): Promise<boolean> => hasKey(node, `posthorn:{s${shard}}:ctl`);

/** A shard of each master that has some. */
async function shardOfEach(): Promise<number[]> {
  const leading = await masters();
  const found = new Map<RedisNode, number>();
  for (let shard = 0; shard < shards; shard++)
    for (const node of leading) if (!found.has(node) && (await has(node, shard))) found.set(node, shard);
  return [...found.values()];
}

/** Kills the master of this shard; answers it and those that led. */
async function killMasterOf(shard: number): Promise<{ killed: RedisNode; before: readonly RedisNode[] }> {
  const before = await masters();
  for (const killed of before) {
    if (!(await has(killed, shard))) continue;
    await killed.kill();
    return { killed, before };
  }
  throw new Error(`no master has shard ${shard}`);
}

/** Waits until as many events as in so many seconds are accepted of those that are sent from now on. */
async function accepts(seconds: number): Promise<void> {
  const from = sender.sent.size;
  const later = (): number => [...sender.accepted].filter((number) => number >= from).length;
  await eventually('events to be accepted', patienceMs, () => later() >= seconds * perSecond);
}

interface Failover {
  /** Events sent until the kill. */
  sent: number;
  leadsAfterMs: number;
  acceptsAfterMs: number;
}

async function failOver(shard: number): Promise<Failover> {
  const { killed, before } = await killMasterOf(shard);
  const sent = sender.sent.size;
  const killedAtMs = performance.now();
  const leader = (await masters()).find((node) => !before.includes(node));
  if (leader === undefined) throw new Error('nobody has taken over');
  const leadsAfterMs = performance.now() - killedAtMs;
  const from = sender.sent.size;
  await eventually('an event to be accepted', patienceMs, () => [...sender.accepted].some((number) => number >= from));
  const acceptsAfterMs = performance.now() - killedAtMs;
  await accepts(1);
  await killed.start(values.cluster === true ? [] : ['--replicaof', `127.0.0.1 ${leader.port}`]);
  await eventually('the replica to follow', patienceMs, async () => (await leader.client.info('replication')).includes('state=online'));
  await sleep(Math.max(0, killedAtMs + betweenKillsMs - performance.now()));
  return { sent, leadsAfterMs, acceptsAfterMs };
}

let failed = true;
try {
  await program.waitForOutput(/^posthorn ready/m, 60_000);
  await redis.connect();
  await routesTo(sinks, { origin, key });
  sender.start();
  await accepts(2);
  const rounds: Failover[] = [];
  // Each master in turn.
  const turns = await shardOfEach();
  while (rounds.length < failovers) rounds.push(await failOver(turns[rounds.length % turns.length] ?? 0));
  await sender.stop();
  const installation = { redis, prefix: 'posthorn:', shards };
  await untilSettled(installation, patienceMs);
  const { findings, unfinished } = await checkShards(installation);
  const lost = [...sender.accepted].filter((number) => sinks.some(({ arrivals }) => !arrivals.has(number)));
  const lostIn = rounds.map(({ sent }, i) => lost.filter((number) => number < sent && number >= (rounds[i - 1]?.sent ?? 0)).length);
  const unexpected = unexpectedArrivals(sinks, sender.sent);
  const repeated = repeatedArrivals(sinks);
  const changedIds = changedWebhookIds(sinks);
  const lostOtherwise = lost.length - lostIn.reduce((sum, count) => sum + count, 0);
  failed = unexpected + changedIds + findings.length + unfinished + lostOtherwise > 0 || lostIn.some((count) => count > perSecond);
  const times = (figures: readonly number[]): string => `${ms(percentile(figures, 0.5))} / ${ms(percentile(figures, 1))}`;
  const [name, what] = values.cluster === true ? ['redis-cluster-failover', 'of a Redis Cluster 3 + 3'] : ['redis-failover', 'by Sentinel'];
  const title = `${failovers} failovers ${what} at ${perSecond}/s for 3 destinations`;
  report(failed || values.short === true ? null : name, title, [
    ['a replica leads after, p50 / max', times(rounds.map(({ leadsAfterMs }) => leadsAfterMs))],
    ['events are accepted again after, p50 / max', times(rounds.map(({ acceptsAfterMs }) => acceptsAfterMs))],
    ['accepted / refused / unanswered', `${sender.accepted.size} / ${sender.refused} / ${sender.unanswered}`],
    ['events lost in each failover', lostIn.join(', ')],
    ['lost / unexpected / duplicated', `${lost.length} / ${unexpected} / ${repeated}`],
    ['events under more than one webhook-id at a destination', String(changedIds)],
    ['findings of posthorn check, unfinished messages', `${findings.length}, ${unfinished}`],
  ]);
} finally {
  await sender.stop();
  await program.stop();
  redis.disconnect();
  await group.stop();
  for (const sink of sinks) sink.close();
  authority.remove();
  rmSync(directory, { recursive: true, force: true });
}
process.exitCode = failed ? 1 : 0;
