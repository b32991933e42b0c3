// What happens when Redis is down, emptied, or full, under load:
//   node hack/chaos/redis.ts away [seconds]     killed, and started again on the same disk, which has all that it has answered
//   node hack/chaos/redis.ts frozen [seconds]   its connections stay, and nothing is answered; then it resumes
//   node hack/chaos/redis.ts emptied            FLUSHALL, beside a real API server, from which the leader publishes everything again
//   node hack/chaos/redis.ts full [megabytes]   a receiver that fails, until no more fits; then it works again
//   node hack/chaos/redis.ts room [seconds] [megabytes]   up to 1,000 events/s into a small Redis, as fast as they are delivered: finished history is evicted
// Ends with 1 when something accepted does not arrive, a process (the controller is one) ends, or ingest does not refuse, within 2 s where Redis is
// down. --short: no figures.
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { checkShards } from '../../src/data/check/shard-check.ts';
import { registryKeys } from '../../src/data/registry/registry-keys.ts';
import { eventually } from '../../test/support/eventually.ts';
import { ms, percentile, report } from '../bench/lib/report.ts';
import { type Behaviour, repeatedArrivals, startSink } from '../bench/lib/sink.ts';
import { type Installation, prepareInstallation, type Role, roles, untilServed } from './installation.ts';
import { kubernetesInstallation } from './kubernetes-installation.ts';
import { servesAgain } from './serves-again.ts';
import { SteadySender } from './steady-sender.ts';
import { untilSettled } from './until-settled.ts';
import { verdict } from './verdict.ts';

const { values, positionals } = parseArgs({ options: { short: { type: 'boolean' } }, allowPositionals: true });
const [scenario = 'away', ...numbers] = positionals;
const [first, second] = numbers.map(Number);
const refusalDeadlineMs = 2000;
/** Events that are accepted and have not arrived, at most, in `room`; a few per cent of the smallest Redis. */
const maxUndelivered = 500;
/** Requests without an answer, at most, in `room`. A machine that is many times slower than ours answers so many within the deadline of ingest. */
const maxUnanswered = 50;
/** What Redis keeps of an event that is delivered, at least, in bytes (hack/bench/memory.ts). */
const finishedEventBytes = 1800;
/** Above all numbers of the sender. */
const firstProbe = 1_000_000_000;

let isFailing = scenario === 'full';
const behaviour: Behaviour = (_, response) => {
  response.statusCode = isFailing ? 500 : 200;
  response.end();
};
const sink = await startSink(behaviour);
const megabytes = scenario === 'full' ? (first ?? 48) : (second ?? 64);
const isSmall = scenario === 'full' || scenario === 'room';
// With `everysec` Redis answers before it writes while the disk is slow to fsync, so a kill loses what it has answered.
const disk = ['--save', '', '--appendonly', 'yes', '--appendfsync', scenario === 'away' ? 'always' : 'everysec'];

async function startAll(): Promise<Omit<Installation, 'start'>> {
  const prepared = await prepareInstallation({
    sinks: [sink],
    shards: 1,
    redisArguments: isSmall ? [...disk, '--maxmemory', `${megabytes}mb`] : disk,
    routes: {
      retryPolicy: { maxRetries: 25, initialDelay: 3000, maxDelay: 3000, backoffMultiplier: 1 },
      // A receiver that fails is tried again and again: it is Redis that is to be full.
      circuit: { circuitFailureThreshold: 1000, circuitCooldownSeconds: 1 },
    },
    environment: { POSTHORN_LOG_LEVEL: 'warn', ...(isSmall ? {} : { POSTHORN_REDIS_MEMORY_LIMIT: '4gb' }) },
  });
  for (const role of ['controller', 'api', 'ingest', 'delivery', 'delivery'] as const) await prepared.start(role);
  return prepared;
}

const installation = scenario === 'emptied' ? await kubernetesInstallation(sink) : await startAll();
const { redis, prefix, shards, ingest, programs } = installation;
/** Events a second; a smaller Redis is filled no faster. */
const rates: Record<string, number> = { room: 1000, full: (megabytes / 48) * 1000 };
/** In `room` only finished history may fill Redis: on a slow machine the sender waits for the deliveries. */
const hasBacklog = (): boolean => sender.accepted.size - sink.arrivals.size >= maxUndelivered;
const sender: SteadySender = new SteadySender(
  ingest,
  rates[scenario] ?? 200,
  scenario === 'room' ? { waits: hasBacklog, maxUnderWay: maxUnanswered } : {},
);
const { rows, mustBe, exitCode } = verdict();

/** All that was accepted, but for what may be lost, has arrived and is settled. */
async function settled(mayBeLost: ReadonlySet<number> = new Set()): Promise<void> {
  const missing = (): number[] => [...sender.accepted].filter((number) => !sink.arrivals.has(number) && !mayBeLost.has(number));
  await eventually('everything accepted to arrive', 120_000, () => missing().length === 0).catch(() => undefined);
  const check = { redis: redis.client, prefix, shards };
  await untilSettled(check, 60_000);
  const { findings, unfinished } = await checkShards(check);
  const lost = missing().length;
  const duplicated = repeatedArrivals([sink]);
  rows.push(['accepted / refused / unanswered', `${sender.accepted.size} / ${sender.refused} / ${sender.unanswered}`]);
  if (sender.refused > 0) rows.push(['refused with', [...sender.refusals].map(([status, count]) => `${count} × ${status}`).join(', ')]);
  rows.push(['lost / attempts beyond one', `${lost} / ${duplicated}`]);
  rows.push(['findings of posthorn check, unfinished messages', `${findings.length}, ${unfinished}`]);
  mustBe('nothing is lost', lost + findings.length + unfinished === 0);
}

/** Sends events to ingest for so long, one after the other; answers its answers. */
async function probed(forMs: number): Promise<{ afterMs: number; status: number; saysWhen: boolean }[]> {
  const answers: Awaited<ReturnType<typeof probed>> = [];
  const end = performance.now() + forMs;
  while (performance.now() < end) {
    const begin = performance.now();
    // What was sent to a frozen Redis is stored after all.
    const body = `{"number":${firstProbe + answers.length},"sent":0}`;
    const { status, headers } = await fetch(ingest, { method: 'POST', body });
    answers.push({ afterMs: performance.now() - begin, status, saysWhen: headers.has('retry-after') });
    await sleep(250);
  }
  const codes = new Map<number, number>();
  for (const { status } of answers) codes.set(status, (codes.get(status) ?? 0) + 1);
  const times = answers.map(({ afterMs }) => afterMs);
  rows.push(['ingest meanwhile: answers', [...codes].map(([status, count]) => `${count} × ${status}`).join(', ')]);
  rows.push(['ingest meanwhile: p99 / slowest answer', `${ms(percentile(times, 0.99))} / ${ms(percentile(times, 1))}`]);
  mustBe(
    'ingest refuses, and says when to try again',
    answers.length > 0 && answers.every(({ status, saysWhen }) => status === 503 && saysWhen),
  );
  return answers;
}

async function deliversAgain(): Promise<void> {
  const back = performance.now();
  await eventually('a delivery after it is back', 30_000, () => (sink.times.at(-1) ?? 0) > back);
  rows.push(['first delivery after it is back', ms((sink.times.find((at) => at > back) ?? 0) - back)]);
}

function linesOfProcesses(silentMs: number): void {
  const lines = roles.map((role) => programs[role].map((program) => program.output().split('\n').length));
  rows.push(['lines of log of each process', roles.map((role, i) => `${role} ${lines[i]?.join(', ')}`).join('; ')]);
  mustBe('no process floods its log', Math.max(...lines.flat()) <= 100 + silentMs / 5000);
}

async function away(): Promise<void> {
  const silentMs = (first ?? 600) * 1000;
  sender.start();
  await sleep(3000);
  await redis.kill('SIGKILL');
  await sleep(1000);
  const answers = await probed(silentMs);
  linesOfProcesses(silentMs);
  await redis.start();
  await deliversAgain();
  mustBe(
    'ingest refuses at once',
    answers.every(({ afterMs }) => afterMs <= refusalDeadlineMs),
  );
  await sleep(3000);
  await sender.stop();
  await settled();
}

async function frozen(): Promise<void> {
  const silentMs = (first ?? 60) * 1000;
  sender.start();
  await sleep(3000);
  const thaw = redis.freeze();
  try {
    await probed(silentMs);
  } finally {
    thaw();
  }
  linesOfProcesses(silentMs);
  await deliversAgain();
  await sleep(3000);
  await sender.stop();
  await settled();
}

async function emptied(): Promise<void> {
  sender.start();
  await sleep(3000);
  await redis.client.flushall();
  const emptiedMs = performance.now();
  const before = new Set(sender.sent);
  rows.push(['accepts and delivers again after', ms(await servesAgain(sender, [sink], 60_000))]);
  await eventually('the leader to publish again', 60_000, async () => (await redis.client.hlen(registryKeys(prefix).records('route'))) > 0);
  rows.push(['everything is published again after', ms(performance.now() - emptiedMs)]);
  await sleep(5000);
  await sender.stop();
  await settled(before);
  rows.push(['lost with Redis', String([...sender.accepted].filter((number) => !sink.arrivals.has(number)).length)]);
  const tells = (role: Role, words: string): boolean => programs[role].every((program) => program.output().includes(words));
  mustBe('the loss is told', tells('delivery', 'Redis was emptied') && tells('controller', 'Redis has lost its data'));
}

async function full(): Promise<void> {
  sender.start();
  await eventually('ingest to refuse', 300_000, () => sender.refused > 100);
  const used = await usedShare();
  isFailing = false;
  await eventually('ingest to take events again', 120_000, async () => {
    const { ok } = await fetch(ingest, { method: 'POST', body: '{"number":-1,"sent":0}' });
    return ok;
  });
  await sleep(2000);
  await sender.stop();
  rows.push(['Redis in use when ingest refuses', used]);
  mustBe('ingest refuses below the limit', Number.parseInt(used, 10) <= 90);
  await settled();
}

async function room(): Promise<void> {
  sender.start();
  let most = 0;
  const fills = (megabytes * 2 ** 20) / finishedEventBytes;
  const end = performance.now() + (first ?? 3600) * 1000;
  const deadline = end + 120_000;
  while (performance.now() < end || (sender.accepted.size < fills && performance.now() < deadline)) {
    most = Math.max(most, Number.parseInt(await usedShare(), 10));
    await sleep(1000);
  }
  await sender.stop();
  rows.push(['most of Redis in use', `${most} %`]);
  mustBe('more is accepted than Redis has room for', sender.accepted.size >= fills);
  mustBe('no event is refused', sender.refused + sender.unanswered === 0);
  await settled();
}

async function usedShare(): Promise<string> {
  const info = await redis.client.info('memory');
  const figure = (name: string): number => Number(new RegExp(`${name}:(\\d+)`).exec(info)?.[1]);
  return `${((100 * figure('used_memory')) / figure('maxmemory')).toFixed(0)} %`;
}

const scenarios: Record<string, () => Promise<void>> = { away, frozen, emptied, full, room };
try {
  const run = scenarios[scenario];
  if (run === undefined) throw new Error(`there is no scenario ${scenario}`);
  await untilServed(installation);
  const processes = Object.values(programs).flat();
  await run();
  const ended = await Promise.race([...processes.map((program) => program.ended), sleep(100, 'none' as const)]);
  mustBe(`no process ends (${processes.map(({ pid }) => pid).join(', ')})`, ended === 'none');
} finally {
  await sender.stop();
  await installation.stop();
  sink.close();
}
const sizes = isSmall ? `, ${megabytes} MB` : '';
report(
  exitCode() !== 0 || values.short === true ? null : `redis-${scenario}`,
  `Redis ${scenario}${first === undefined ? '' : ` ${first}`}${sizes}`,
  rows,
);
process.exitCode = exitCode();
