// What an honest organization notices of a hostile one, in standalone with everything on one port:
//   node hack/bench/hostile.ts [seconds] [rounds] [report 0/1]
// Hostile, all at once: 200 receivers that hang, 72 MB of events that wait, imports of 8 MB, events for 250 filters at their bound, and 1,000
// connections that send a byte now and then. Redis has 160 MB. The hostile organization is niced, so that what is measured is what the product does
// with it and not the want of processors. The honest one has a receiver with a fast history, and one event each for receivers that nothing was
// delivered to before. A round is a new installation: first alone, then beside the other. Medians of the rounds.
// Ends with 1 when a p99 of the honest one is above 50 ms, one of its events is refused, or the hostile one has more than its shares.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { newApiKey } from '../../src/core/api-key-hash.ts';
import { ByteShares } from '../../src/data/queue/byte-shares.ts';
import { systemClock } from '../../src/runtime/system-clock.ts';
import { eventually } from '../../test/support/eventually.ts';
import { startStandalone } from '../../test/support/program.ts';
import { startRedis } from '../../test/support/redis.ts';
import { buildProgram, builtProgram } from '../lib/built-program.ts';
import { type Ceilings, ceilingRows, measureCeilings } from './lib/ceilings.ts';
import { costlyType } from './lib/costly-requests.ts';
import { type Exactness, exactDelivery, exactnessRow, sumOf } from './lib/exact-delivery.ts';
import { hostile } from './lib/hostile-organization.ts';
import { meterProcessor, processorRow } from './lib/processes.ts';
import { withAof } from './lib/redis-options.ts';
import { ms, percentile, report } from './lib/report.ts';
import { type Behaviour, startSink } from './lib/sink.ts';
import { manifest, StandaloneClient } from './lib/standalone-client.ts';
import { joined, Sender, type Sent } from './lib/traffic.ts';

const [seconds = 20, rounds = 3, isKept = 1] = process.argv.slice(2).map(Number);
const [knownPerSecond, newPerSecond] = [50, 1];
const boundMs = 50;
const redisBytes = 160 * 2 ** 20;
/** Slow attempts have a quarter of the slots, and a quarter of the quarter for probes. */
const [slots, slowShare, unfinishedShare] = [128, 1 / 4 + 1 / 16, 0.4];
const hangingTimeoutMs = 60_000;
const warmUpMs = 3000;
const attacker = new URL('lib/hostile-organization.ts', import.meta.url).pathname;

interface Figures {
  /** ms from sender to receiver. */
  known: number[];
  new: number[];
  refused: number;
}

interface Round {
  alone: Figures;
  beside: Figures;
  /** What the hostile one had at most: attempts under way, bytes of unfinished events. */
  most: { underWay: number; unfinishedBytes: number };
  answered: string;
  processor: number;
  ceilings: Ceilings;
  exact: Exactness;
}

function manifests(key: { sha256: string }, receivers: { honest: string; new: string; hanging: string }): string[] {
  const { organization, hanging, waiting } = hostile;
  const egress = { allowedCidrs: ['127.0.0.0/8'] };
  const source = (namespace: string, name: string): string => manifest('Source', name, { provider: 'generic' }, namespace);
  const route = (namespace: string, name: string, from: string, destinations: readonly string[]): string =>
    manifest('Route', name, { sourceRef: { name: from }, destinationRefs: destinations.map((to) => ({ name: to })) }, namespace);
  const lane = (namespace: string, name: string): string[] => [source(namespace, name), route(namespace, name, name, [name])];
  const destination = (namespace: string, name: string, url: string, more: object = {}, enabled = true): string =>
    manifest('Destination', name, { type: 'http', enabled, http: { url, ...more } }, namespace);
  const newOnes = Array.from({ length: 2 * seconds * newPerSecond }, (_, i) => `new${i}`);
  const hangingOnes = Array.from({ length: hostile.receivers }, (_, i) => `hang${i}`);
  return [
    manifest('Organization', organization, { namespace: organization, egress }),
    manifest('Organization', 'honest', { namespace: 'honest', egress }),
    manifest('ApiKey', 'bench', { sha256: key.sha256, role: 'developer' }, organization),
    destination('honest', 'known', receivers.honest),
    ...lane('honest', 'known'),
    ...newOnes.flatMap((name) => [destination('honest', name, receivers.new), ...lane('honest', name)]),
    ...hangingOnes.map((name) => destination(organization, name, receivers.hanging, { timeoutMs: hangingTimeoutMs })),
    source(organization, hanging),
    ...[0, 100].map((first) => route(organization, `${hanging}${first}`, hanging, hangingOnes.slice(first, first + 100))),
    destination(organization, waiting, receivers.hanging, {}, false),
    ...lane(organization, waiting),
  ];
}

async function run(): Promise<Round> {
  const directory = mkdtempSync(join(tmpdir(), 'posthorn-hostile-'));
  const key = newApiKey();
  let [underWay, maxUnderWay] = [0, 0];
  const hang: Behaviour = (request) => {
    maxUnderWay = Math.max(maxUnderWay, ++underWay);
    request.socket.once('close', () => underWay--);
  };
  const sinks = { honest: await startSink(), new: await startSink(), hanging: await startSink(hang) };
  const origins = { honest: sinks.honest.origin, new: sinks.new.origin, hanging: sinks.hanging.origin };
  const redis = await startRedis([...withAof, '--maxmemory', String(redisBytes)]);
  const written = join(directory, 'manifests');
  mkdirSync(written);
  for (const [i, each] of manifests(key, origins).entries()) writeFileSync(join(written, `${i}.json`), each);
  const ceilings = await measureCeilings(sinks.honest.origin, 20_000, 64);
  const standalone = await startStandalone({
    args: ['--manifests', written],
    environment: {
      POSTHORN_REDIS_URL: redis.url,
      POSTHORN_LOG_LEVEL: 'warn',
      POSTHORN_DELIVERY_CONCURRENCY: String(slots),
      POSTHORN_ALLOW_INSECURE_ENDPOINTS: 'true',
    },
    file: builtProgram,
  });
  const sender = new Sender(standalone.url, 64);
  let nextNew = 0;
  const measured = async (): Promise<{ figures: Figures; sent: { known: Sent; new: Sent } }> => {
    for (const sink of [sinks.honest, sinks.new]) sink.reset();
    const toNew = async (): Promise<Sent> => {
      const parts: Sent[] = [];
      for (let i = 0; i < seconds * newPerSecond; i++) {
        parts.push(await sender.openLoop(`/ingest/honest/new${nextNew++}`, 1, 1));
        await sleep(1000 / newPerSecond);
      }
      return joined(parts);
    };
    const [known, toNewOnes] = await Promise.all([sender.openLoop('/ingest/honest/known', knownPerSecond, seconds), toNew()]);
    const sent = { known, new: toNewOnes };
    exact.push(
      await exactDelivery([
        { sink: sinks.honest, sent: [sent.known] },
        { sink: sinks.new, sent: [sent.new] },
      ]),
    );
    const figures = {
      known: [...sinks.honest.latenciesMs],
      new: [...sinks.new.latenciesMs],
      refused: sent.known.refused + sent.new.refused,
    };
    return { figures, sent };
  };
  const exact: Exactness[] = [];
  const shares = new ByteShares({ redis: redis.client, prefix: 'posthorn:', clock: systemClock, shards: () => 1 });
  let unfinishedBytes = 0;
  try {
    await eventually('all sources to be served', 60_000, async () => {
      const path = `${standalone.url}/ingest/${hostile.organization}/${hostile.waiting}`;
      return (await fetch(path, { method: 'POST', body: '{}' })).ok;
    });
    await new StandaloneClient(standalone.url, key.key).subscribe(
      costlyType.name,
      costlyType.subscriptions,
      sinks.hanging.origin,
      costlyType.filter,
    );
    const warmUp = await sender.openLoop('/ingest/honest/known', knownPerSecond, 5);
    await exactDelivery([{ sink: sinks.honest, sent: [warmUp] }]);
    const meter = meterProcessor(() => [redis.pid, standalone.program.pid]);
    const alone = await measured();
    const processor = meter(sinks.honest.arrivals.size + sinks.new.arrivals.size);
    const child = spawn('nice', ['-n', '19', process.execPath, attacker, standalone.url, String(standalone.port), key.key], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const printed = text(child.stdout);
    const ended = once(child, 'exit');
    const watch = setInterval(() => {
      void shares.figures().then(({ byAccount }) => {
        unfinishedBytes = Math.max(unfinishedBytes, ...[...byAccount.values()]);
      });
    }, 1000);
    try {
      await sleep(warmUpMs);
      const beside = await measured();
      child.kill('SIGTERM');
      return {
        alone: alone.figures,
        beside: beside.figures,
        most: { underWay: maxUnderWay, unfinishedBytes },
        answered: (await printed).trim(),
        processor,
        ceilings,
        exact: sumOf(exact),
      };
    } finally {
      clearInterval(watch);
      child.kill('SIGTERM');
      await ended;
    }
  } finally {
    await sender.close();
    await standalone.stop();
    await redis.stop();
    for (const sink of Object.values(sinks)) sink.close();
    rmSync(directory, { recursive: true, force: true });
  }
}

// What is measured is what the image holds.
buildProgram();
const all: Round[] = [];
for (let i = 0; i < rounds; i++) all.push(await run());

const median = (values: readonly number[]): number => percentile(values, 0.5);
const p99 = (of: (round: Round) => readonly number[]): number => median(all.map((round) => percentile(of(round), 0.99)));
const most = (of: (round: Round) => number): number => Math.max(...all.map(of));
const refused = (of: (round: Round) => Figures): string => String(all.reduce((sum, round) => sum + of(round).refused, 0));
const beside = { known: p99((round) => round.beside.known), new: p99((round) => round.beside.new) };
const held = { underWay: most((round) => round.most.underWay), unfinishedBytes: most((round) => round.most.unfinishedBytes) };
const share = { underWay: slots * slowShare, unfinishedBytes: redisBytes * unfinishedShare };
report(
  isKept === 1 ? 'hostile' : null,
  `standalone, honest at ${knownPerSecond}/s and ${newPerSecond} new receiver a second for ${seconds} s, medians of ${rounds} rounds`,
  [
    ...ceilingRows({
      undici: median(all.map(({ ceilings }) => ceilings.undici)),
      redis: median(all.map(({ ceilings }) => ceilings.redis)),
    }),
    ['alone: p99 to a known receiver', ms(p99((round) => round.alone.known))],
    ['alone: p99 to new receivers', ms(p99((round) => round.alone.new))],
    ['beside the hostile one: p99 to a known receiver', ms(beside.known)],
    ['beside the hostile one: p99 to new receivers', ms(beside.new)],
    ['refused, alone; beside', `${refused((round) => round.alone)}; ${refused((round) => round.beside)}`],
    ['attempts of the hostile one under way, most (share)', `${held.underWay} (${share.underWay})`],
    [
      'unfinished bytes of the hostile one, most (40 % of Redis)',
      `${(held.unfinishedBytes / 2 ** 20).toFixed(1)} (${(share.unfinishedBytes / 2 ** 20).toFixed(1)}) MiB`,
    ],
    ...all.map(({ answered }, i): [string, string] => [`round ${i + 1}: what the hostile one was answered`, answered]),
    processorRow(median(all.map(({ processor }) => processor)), 'alone'),
    exactnessRow(sumOf(all.map(({ exact }) => exact)), 'honest'),
  ],
);
const isWithin =
  Math.max(beside.known, beside.new) <= boundMs &&
  all.every((round) => round.alone.refused + round.beside.refused === 0) &&
  held.underWay <= share.underWay &&
  held.unfinishedBytes <= share.unfinishedBytes * 1.05;
process.exitCode = isWithin ? 0 : 1;
