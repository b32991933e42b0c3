// What bad receivers do to a healthy one at 200/s:
//   node hack/bench/isolation.ts [seconds] [runs]
// Bad: one never answers (1,000 messages, 30 s timeout), ten more hang with 100 each, one resets, one drips, one is throttled to 1/s
// with a backlog. Each run measures the healthy one undisturbed first, then with the bad ones arriving while its queue is empty.
import { setTimeout as sleep } from 'node:timers/promises';
import { waitUntil } from '../../test/support/wait-until.ts';
import { exactDelivery, ms, percentile, perSecond, report } from './lib/report.ts';
import { behaviours, startSink } from './lib/sink.ts';
import { bareCeiling, Sender } from './lib/traffic.ts';
import { type Lane, startWorld } from './lib/world.ts';

const [seconds = 30, runs = 5, backlog = 100_000] = process.argv.slice(2).map(Number);
const rate = 200;
const hangingMore = 10;

interface Run {
  alone: number;
  disturbed: number;
  lost: number;
  duplicated: number;
  ceiling: number;
}

async function run(): Promise<Run> {
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
  const sender = new Sender(world.api, 64);
  const count = rate * seconds;
  try {
    const ceiling = await bareCeiling(healthy.origin, 20_000, 64);
    await sender.closedLoop(world.path('healthy'), 500, 8);
    await sleep(1000);
    healthy.reset();
    let accepted = count - (await sender.openLoop(world.path('healthy'), rate, seconds)).refused;
    await waitUntil('the undisturbed run', 30_000, () => (healthy.arrivals.size >= accepted ? true : undefined));
    const alone = percentile(healthy.latenciesMs, 0.99);
    healthy.reset();
    await sender.closedLoop(world.path('throttled'), backlog, 32);
    await Promise.all([
      sender.closedLoop(world.path('hanging'), 1000, 16),
      ...Array.from({ length: hangingMore }, (_, i) => sender.closedLoop(world.path(`hanging${i}`), 100, 2)),
      sender.closedLoop(world.path('resetting'), 100, 2),
      sender.closedLoop(world.path('dripping'), 100, 2),
    ]);
    accepted = count - (await sender.openLoop(world.path('healthy'), rate, seconds)).refused;
    await waitUntil('the disturbed run', 120_000, () => (healthy.arrivals.size >= accepted ? true : undefined));
    return { alone, disturbed: percentile(healthy.latenciesMs, 0.99), ceiling, ...exactDelivery([healthy], accepted) };
  } finally {
    await sender.close();
    await world.stop();
    for (const sink of [healthy, ...Object.values(bad)]) sink.close();
  }
}

const results: Run[] = [];
for (let i = 0; i < runs; i++) results.push(await run());
const median = (of: (run: Run) => number): number => percentile(results.map(of), 0.5);
report('isolation', `healthy target at ${rate}/s for ${seconds} s, median of ${runs} runs`, [
  ['bare undici loop', perSecond(median(({ ceiling }) => ceiling))],
  ['p99 undisturbed', ms(median(({ alone }) => alone))],
  ['p99 beside hanging, resetting, dripping and throttled targets', ms(median(({ disturbed }) => disturbed))],
  [
    'ratio',
    `${median(({ alone, disturbed }) => disturbed / alone).toFixed(2)} (${results.map(({ alone, disturbed }) => (disturbed / alone).toFixed(2)).join(', ')})`,
  ],
  ['lost / duplicated', `${median(({ lost }) => lost)} / ${median(({ duplicated }) => duplicated)}`],
]);
