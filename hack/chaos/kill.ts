// Kills processes under load and proves that nothing is lost:
//   node hack/chaos/kill.ts [rounds] [--everysec] [--faults] [--seed N] [--short]
// Each round kills (SIGKILL) the api, ingest, one of two workers, the controller, or Redis (same disk; appendfsync always unless --everysec),
// starts it again, and waits until a new event is accepted and delivered. Meanwhile one sender sends events to three destinations over four shards. Another
// sends to an ordered destination and to one without order. Some of its events are scheduled, some expire (choices.ts). With --faults the roles reach Redis through
// Toxiproxy, and in two rounds of three a line is disturbed for some seconds beside the kill. At the end every accepted event must have arrived at each destination (with --everysec what is lost is only counted), under one
// webhook-id each, again only what was in flight when a worker or Redis was killed or a worker's line was disturbed, and `posthorn check` must
// have no findings. An event of the other sender may be missing only if it has expired. The ordered destination must get its events in the order of
// acceptance, and no scheduled event may come early. Every hundred rounds that is counted, and a new installation begins, whose Redis is small. --short keeps no figures.
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { checkShards } from '../../src/data/check/shard-check.ts';
import { eventually } from '../../test/support/eventually.ts';
import { ms, percentile, report } from '../bench/lib/report.ts';
import { type Behaviour, changedWebhookIds, startSink, unexpectedArrivals } from '../bench/lib/sink.ts';
import { checkChoices, choicesSource, startChoices } from './choices.ts';
import { evidenceOf } from './evidence.ts';
import { InFlight } from './in-flight.ts';
import { prepareInstallation, roles } from './installation.ts';
import { type NetworkFaults, startNetworkFaults } from './network-faults.ts';
import { randomOf } from './random.ts';
import { servesAgain } from './serves-again.ts';
import { SteadySender } from './steady-sender.ts';
import { untilSettled } from './until-settled.ts';

const { values, positionals } = parseArgs({
  options: { everysec: { type: 'boolean' }, faults: { type: 'boolean' }, seed: { type: 'string' }, short: { type: 'boolean' } },
  allowPositionals: true,
});
const rounds = Number(positionals[0] ?? 200);
const seed = Number(values.seed ?? Date.now() % 1_000_000);
const random = randomOf(seed);
const fsync = values.everysec === true ? 'everysec' : 'always';
const perSecond = 100;
const choicesPerSecond = 20;
const shards = 4;
const prefix = 'posthorn:';
/** Limit for a busy machine, on which a process takes seconds to start. */
const servesAgainWithinMs = 120_000;
const disturbedShare = 2 / 3;
const roundsOfOne = 100;

const victims = [...roles, 'redis'] as const;
type Victim = (typeof victims)[number];
const kills = new Map<Victim, number>(victims.map((victim) => [victim, 0]));
const disturbed = new Map<string, number>();
const servesAfterMs: number[] = [];
const latenciesMs: number[] = [];
const sums = {
  sent: 0,
  accepted: 0,
  refused: 0,
  unanswered: 0,
  lost: 0,
  unexpected: 0,
  repeated: 0,
  inFlight: 0,
  unexplained: 0,
  changedIds: 0,
  findings: 0,
  unfinished: 0,
  choices: 0,
  expired: 0,
  missing: 0,
  outOfOrder: 0,
  early: 0,
};

/** So many kills of one installation, whose sums are reported. */
async function killOne(rounds: number): Promise<void> {
  const inFlight = new InFlight({ prefix, shards });
  const receive: Behaviour = ({ headers }, response) => {
    inFlight.received(String(headers['webhook-id']));
    response.end();
  };
  const sinks = await Promise.all([startSink(receive), startSink(receive), startSink(receive)]);
  const choices = await startChoices();
  let faults: NetworkFaults | undefined;
  const installation = await prepareInstallation({
    sinks,
    more: { sinks: choices.sinks, routes: { sourceName: choicesSource, settings: choices.settings } },
    shards,
    redisArguments: ['--save', '', '--appendonly', 'yes', '--appendfsync', fsync],
    environment: { POSTHORN_REDIS_MEMORY_LIMIT: '4gb' },
    ...(values.faults === true && {
      lineOf: async (role, { port }) => {
        faults ??= await startNetworkFaults(random);
        return await faults.lineOf(role, port);
      },
    }),
  });
  const { redis, programs } = installation;
  const [, disk = ''] = (await redis.client.config('GET', 'dir')) as string[];
  let startedWorkers = 0;

  const start = async (role: Exclude<Victim, 'redis'>): Promise<void> => {
    await installation.start(role);
    if (role === 'delivery') startedWorkers++;
  };

  const kill = async (victim: Victim): Promise<void> => {
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
  };

  /** Disturbs the line of a role for a while. */
  const disturb = async (network: NetworkFaults): Promise<void> => {
    const fault = network.next();
    const strike = (): Promise<void> => network.strike(fault);
    if (fault.role === 'delivery') await inFlight.workersCutOff(redis.client, () => sender.sent.size, strike);
    else await strike();
  };

  const sender = new SteadySender(installation.ingest, perSecond);
  const chooser = new SteadySender(installation.ingestMore, choicesPerSecond, { headersOf: choices.headersOf });
  try {
    await inFlight.begin(redis.client);
    for (const role of ['controller', 'api', 'ingest', 'delivery', 'delivery'] as const) {
      await inFlight.workersCame(redis.client, startedWorkers);
      await start(role);
    }
    sender.start();
    chooser.start();
    await servesAgain(sender, sinks, servesAgainWithinMs);
    for (let round = 0; round < rounds; round++) {
      await sleep(300 + random() * 1200);
      const victim = victims[Math.floor(random() * victims.length)] ?? 'ingest';
      const network = faults !== undefined && random() < disturbedShare ? faults : undefined;
      const killAfterMs = network === undefined ? 0 : random() * 3000;
      await Promise.all([network === undefined ? undefined : disturb(network), sleep(killAfterMs).then(() => kill(victim))]);
      servesAfterMs.push(await servesAgain(sender, sinks, servesAgainWithinMs));
    }
    await sleep(3000);
    await Promise.all([sender.stop(), chooser.stop()]);
    const missing = (): number => [...sender.accepted].filter((number) => sinks.some(({ arrivals }) => !arrivals.has(number))).length;
    await eventually('everything accepted to arrive', 180_000, () => missing() === 0).catch(() => undefined);
    // The ordered destination gets its backlog one at a time.
    await untilSettled({ redis: redis.client, prefix, shards }, 180_000);
    const { findings, unfinished } = await checkShards({ redis: redis.client, prefix, shards });
    for (const { id, complaint } of findings) {
      console.error(`${id} ${complaint}`);
      for (const line of await evidenceOf(id, { redis: redis.client, prefix, disk })) console.error(`  ${line}`);
    }
    const { accepted, ...chosen } = await checkChoices({ redis: redis.client, prefix, shards }, choices, chooser);
    add({
      sent: sender.sent.size,
      accepted: sender.accepted.size,
      refused: sender.refused,
      unanswered: sender.unanswered,
      lost: missing(),
      unexpected: unexpectedArrivals(sinks, sender.sent),
      ...inFlight.count(sinks),
      changedIds: changedWebhookIds([...sinks, ...choices.sinks]),
      choices: accepted,
      ...chosen,
      findings: findings.length,
      unfinished,
    });
    for (const [kind, times] of faults?.counts ?? []) disturbed.set(kind, (disturbed.get(kind) ?? 0) + times);
    for (const sink of sinks) for (const latencyMs of sink.latenciesMs) latenciesMs.push(latencyMs);
  } finally {
    await Promise.all([sender.stop(), chooser.stop()]);
    await installation.stop();
    await faults?.stop();
    for (const sink of [...sinks, ...choices.sinks]) sink.close();
  }
}

function add(more: typeof sums): void {
  for (const name of Object.keys(sums) as (keyof typeof sums)[]) sums[name] += more[name];
}

const threeOf = (figures: readonly number[]): string => [0.5, 0.99, 1].map((share) => ms(percentile(figures, share))).join(' / ');

console.log(`seed ${seed}`);
for (let done = 0; done < rounds; done += roundsOfOne) await killOne(Math.min(roundsOfOne, rounds - done));
const isBeyond = sums.repeated > sums.inFlight || sums.unexplained > 0;
const wrong = sums.unexpected + sums.changedIds + sums.findings + sums.unfinished + sums.early;
const failed = isBeyond || wrong > 0 || (fsync === 'always' && sums.lost + sums.missing + sums.outOfOrder > 0);
const [suffix, beside] = values.faults === true ? ['-faults', ', lines to Redis disturbed'] : ['', ''];
report(
  failed || values.short === true ? null : `kill-${fsync}${suffix}`,
  `${rounds} kills at ${perSecond}/s for 3 destinations, seed ${seed}, appendfsync ${fsync}${beside}`,
  [
    ['kills', [...kills].map(([victim, times]) => `${victim} ${times}`).join(', ')],
    ['disturbed lines', [...disturbed].map(([kind, times]) => `${kind} ${times}`).join(', ') || 'none'],
    [
      'accepted / refused / unanswered; share accepted',
      `${sums.accepted} / ${sums.refused} / ${sums.unanswered}; ${Math.round((100 * sums.accepted) / sums.sent)} %`,
    ],
    ['accepts and delivers again after, p50 / p99 / max', threeOf(servesAfterMs)],
    ['lost / unexpected / duplicated', `${sums.lost} / ${sums.unexpected} / ${sums.repeated}`],
    ['in flight when workers or Redis were killed or cut off; duplicated without that', `${sums.inFlight}; ${sums.unexplained}`],
    ['events under more than one webhook-id at a destination', String(sums.changedIds)],
    ['findings of posthorn check, unfinished messages', `${sums.findings}, ${sums.unfinished}`],
    [
      'events with choices: accepted / expired / missing / out of order / early',
      [sums.choices, sums.expired, sums.missing, sums.outOfOrder, sums.early].join(' / '),
    ],
    ['latency p50 / p99 / max', threeOf(latenciesMs)],
  ],
);
process.exitCode = failed ? 1 : 0;
