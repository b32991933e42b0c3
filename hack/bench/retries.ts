// What a wall of retries does: their lateness, and the latency of a healthy destination at 200/s beside them.
//   node hack/bench/retries.ts [retries]
// Every message fails once and is due again 76 to 114 s later, when all have failed once: first attempts take 22 s, so retries come within a
// minute. Half of them fail, too. The circuit stays closed.
import { eventually } from '../../test/support/eventually.ts';
import { ceilingRows, measureCeilings } from './lib/ceilings.ts';
import { compare, type Exactness, exactDelivery, exactnessRow, settled, sumOf } from './lib/exact-delivery.ts';
import { startFailingReceiver } from './lib/failing-receiver.ts';
import { processorRow } from './lib/processes.ts';
import { ms, percentile, report } from './lib/report.ts';
import { startSink } from './lib/sink.ts';
import { Sender } from './lib/traffic.ts';
import { startWorld } from './lib/world.ts';

const [retries = 100_000] = process.argv.slice(2).map(Number);
const rate = 200;
const aloneSeconds = 40;
const pace = { maxRetries: 2, initialDelayMs: 95_000, maxDelayMs: 3_600_000, backoffMultiplier: 10 };

const failing = await startFailingReceiver();
const healthy = await startSink();
const world = await startWorld({
  lanes: [
    { slug: 'healthy', urls: [healthy.origin] },
    {
      slug: 'failing',
      urls: [failing.origin],
      destination: { retryPolicy: pace },
      circuit: { failureThreshold: 10_000_000 },
    },
  ],
});
const sender = new Sender(world.ingest, 64);

function timesOf(numbers: readonly number[]): Map<number, number> {
  const times = new Map<number, number>();
  for (const number of numbers) times.set(number, (times.get(number) ?? 0) + 1);
  return times;
}

try {
  const ceilings = await measureCeilings(healthy.origin, 20_000, 64);
  healthy.reset();
  const warmUp = await sender.closedLoop(world.path('healthy'), 1000, 16);
  const exact = [await exactDelivery([{ sink: healthy, sent: [warmUp] }])];
  /** Returns the p99. */
  const measure = async (seconds: number): Promise<number> => {
    healthy.reset();
    const sent = await sender.openLoop(world.path('healthy'), rate, seconds);
    await settled(60_000, () => healthy.arrivals.size >= sent.accepted.length);
    exact.push(await exactDelivery([{ sink: healthy, sent: [sent] }]));
    return percentile(healthy.latenciesMs, 0.99);
  };
  const alone = await measure(aloneSeconds);
  const meter = world.meterProcessor();
  const sent = await sender.closedLoop(world.path('failing'), retries, 64);
  await settled(60_000, () => failing.firstAttempts() >= sent.accepted.length);
  const waiting = await world.redis.client.zrangebyscore(`${world.prefix}{s0}:due`, '-inf', '+inf', 'WITHSCORES');
  /** By webhook-id: when the retry is due, in ms since the epoch. */
  const due = new Map<string, number>();
  for (let i = 0; i < waiting.length; i += 2) due.set(`msg_00${waiting[i]?.split(' ')[1]}`, Number(waiting[i + 1]));
  const first = Math.min(...due.values());
  const last = [...due.values()].reduce((latest, at) => Math.max(latest, at), 0);
  await eventually('the first retry', 120_000, () => failing.retries() > 0);
  const beside = await measure(Math.ceil((last - first) / 1000));
  await settled(120_000, () => failing.retries() >= due.size);
  // Retries end as deliveries; `healthy` has begun to count with those beside them.
  const processor = meter(failing.retries() + healthy.arrivals.size);
  const told = await failing.told();
  const latenessMs = told.retries.map(([, webhookId, atMs]) => atMs - (due.get(webhookId) ?? 0));
  const exactOf = (numbers: readonly number[]): Exactness => compare([{ sink: { arrivals: timesOf(numbers) }, sent: [sent] }]);
  report('retries', `${due.size} retries due within ${((last - first) / 1000).toFixed(0)} s, ${rate}/s to a healthy destination`, [
    ...ceilingRows(ceilings),
    ['lateness of retries p50 / p99', `${ms(percentile(latenessMs, 0.5))} / ${ms(percentile(latenessMs, 0.99))}`],
    ['healthy p99 alone / beside them', `${ms(alone)} / ${ms(beside)} (${(beside / alone).toFixed(2)} times)`],
    processorRow(processor, 'first attempts, retries and what is beside them'),
    ['refused', String(sent.refused)],
    exactnessRow(sumOf(exact), 'healthy'),
    exactnessRow(exactOf(told.firstAttempts), 'first attempts'),
    exactnessRow(exactOf(told.retries.map(([number]) => number)), 'retries'),
  ]);
} finally {
  await sender.close();
  await world.stop();
  healthy.close();
  await failing.close();
}
