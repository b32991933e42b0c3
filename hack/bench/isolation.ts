// What bad receivers do to a healthy one at 200/s:
//   node hack/bench/isolation.ts [seconds] [runs] [backlog of the throttled one]
// Bad: one never answers (1,000 messages, 30 s timeout), ten more hang with 100 each, one resets, one drips, one is throttled to 1/s
// with a backlog. Each run measures the healthy one undisturbed first, then beside that backlog with the bad ones; their messages come
// as fast as they are taken while its queue is empty, and in other runs within 5 s while its traffic flows, from its second second on.
import { setTimeout as sleep } from 'node:timers/promises';
import { type Ceilings, ceilingRows, measureCeilings } from './lib/ceilings.ts';
import { type Exactness, exactDelivery, exactnessRow, settled, sumOf } from './lib/exact-delivery.ts';
import { processorRow } from './lib/processes.ts';
import { ms, percentile, report } from './lib/report.ts';
import { behaviours, startSink } from './lib/sink.ts';
import { Sender, type Sent } from './lib/traffic.ts';
import { type Lane, startWorld } from './lib/world.ts';

const [seconds = 30, runs = 5, backlog = 100_000] = process.argv.slice(2).map(Number);
const rate = 200;
const hangingMore = 10;
const arrivalSeconds = 5;

/** When the bad ones come. */
const comings = ['while the healthy queue is empty', 'while healthy traffic flows'] as const;
type Coming = (typeof comings)[number];

interface Run {
  alone: number;
  disturbed: number;
  /** µs for each event of the healthy one while it is alone. */
  processor: number;
  exact: Exactness;
  ceilings: Ceilings;
}

async function run(coming: Coming): Promise<Run> {
  const healthy = await startSink();
  const bad = {
    hanging: await startSink(behaviours.hang),
    resetting: await startSink(behaviours.reset),
    dripping: await startSink(behaviours.drip),
    throttled: await startSink(),
  };
  const circuit = { failureThreshold: 1000 };
  const throttle = { mode: 'rate', rateLimit: 1, rateUnit: 'second', maxConcurrency: null, queueLimit: null } as const;
  const lanes: Lane[] = [
    { slug: 'healthy', urls: [healthy.origin] },
    { slug: 'hanging', urls: [bad.hanging.origin], circuit },
    ...Array.from({ length: hangingMore }, (_, i) => ({ slug: `hanging${i}`, urls: [bad.hanging.origin], circuit })),
    { slug: 'resetting', urls: [bad.resetting.origin], circuit },
    { slug: 'dripping', urls: [bad.dripping.origin], circuit },
    { slug: 'throttled', urls: [bad.throttled.origin], destination: { throttle } },
  ];
  const world = await startWorld({ lanes });
  const sender = new Sender(world.ingest, 64);
  const traffic = (): Promise<Sent> => sender.openLoop(world.path('healthy'), rate, seconds);
  const ofBad: readonly (readonly [slug: string, count: number])[] = [
    ['hanging', 1000],
    ...Array.from({ length: hangingMore }, (_, i) => [`hanging${i}`, 100] as const),
    ['resetting', 100],
    ['dripping', 100],
  ];
  try {
    const ceilings = await measureCeilings(healthy.origin, 20_000, 64);
    healthy.reset();
    const warmUp = await sender.closedLoop(world.path('healthy'), 500, 8);
    const exact = [await exactDelivery([{ sink: healthy, sent: [warmUp] }])];
    const measured = async (send: () => Promise<Sent>, onEnd?: () => void): Promise<number> => {
      healthy.reset();
      const sent = await send();
      await settled(120_000, () => healthy.arrivals.size >= sent.accepted.length);
      onEnd?.();
      exact.push(await exactDelivery([{ sink: healthy, sent: [sent] }]));
      return percentile(healthy.latenciesMs, 0.99);
    };
    const meter = world.meterProcessor();
    let processor = 0;
    const alone = await measured(traffic, () => (processor = meter(healthy.arrivals.size)));
    await sender.closedLoop(world.path('throttled'), backlog, 32);
    if (coming === 'while the healthy queue is empty') {
      await Promise.all(ofBad.map(([slug, count]) => sender.closedLoop(world.path(slug), count, Math.ceil(count / 64))));
    }
    const disturbed = await measured(async () => {
      const flowing = traffic();
      if (coming === 'while healthy traffic flows') {
        await sleep(1000);
        await Promise.all(ofBad.map(([slug, count]) => sender.openLoop(world.path(slug), count / arrivalSeconds, arrivalSeconds)));
      }
      return await flowing;
    });
    return { alone, disturbed, processor, exact: sumOf(exact), ceilings };
  } finally {
    await sender.close();
    await world.stop();
    for (const sink of [healthy, ...Object.values(bad)]) sink.close();
  }
}

const median = (values: readonly number[]): number => percentile(values, 0.5);
const rows: [string, string][] = [];
const all: Run[] = [];
for (const coming of comings) {
  const results: Run[] = [];
  for (let i = 0; i < runs; i++) results.push(await run(coming));
  const ratios = results.map(({ alone, disturbed }) => disturbed / alone);
  rows.push(
    [`${coming}: p99 undisturbed`, ms(median(results.map(({ alone }) => alone)))],
    [
      `${coming}: p99 when hanging, resetting and dripping ones come beside a throttled one`,
      ms(median(results.map(({ disturbed }) => disturbed))),
    ],
    [`${coming}: ratio`, `${median(ratios).toFixed(2)} (${ratios.map((ratio) => ratio.toFixed(2)).join(', ')})`],
  );
  all.push(...results);
}
report('isolation', `healthy target at ${rate}/s for ${seconds} s, medians of ${runs} runs each`, [
  ...ceilingRows({ undici: median(all.map(({ ceilings }) => ceilings.undici)), redis: median(all.map(({ ceilings }) => ceilings.redis)) }),
  ...rows,
  processorRow(median(all.map(({ processor }) => processor)), 'undisturbed'),
  exactnessRow(sumOf(all.map(({ exact }) => exact)), `all ${all.length} runs`),
]);
