// What an event costs whose source has many routes that filter it out, one at a time, to a process of ingest that has seen nothing of the source, and
// after that:
//   node hack/bench/filtering-routes.ts [routes] [events]
// One further route takes every event. Ends with 1 when the first event of a source takes more than 150 ms, or the median of the next ones more than 20 ms.
import { loadavg } from 'node:os';
import { ms, percentile, report } from './lib/report.ts';
import { Sender } from './lib/traffic.ts';
import { startWorld } from './lib/world.ts';

const [routes = 2000, events = 50] = process.argv.slice(2).map(Number);
const bounds = { coldMs: 150, warmMs: 20 };
const slugs = ['one', 'two', 'three'];
const lanes = slugs.map((slug) => ({ slug, urls: ['http://127.0.0.1:9'], filteringRoutes: routes }));
const world = await startWorld({ lanes: [{ slug: 'plain', urls: ['http://127.0.0.1:9'] }, ...lanes], workers: 0 });
const sender = new Sender(world.ingest, 1);

async function commands(): Promise<number> {
  return Number(/total_commands_processed:(\d+)/.exec(await world.redis.client.info('stats'))?.[1] ?? '0');
}

try {
  const plain = await sender.closedLoop(world.path('plain'), 500, 1);
  const cold: number[] = [];
  const warm: number[] = [];
  let counted = 0;
  for (const slug of slugs) {
    cold.push(...(await sender.closedLoop(world.path(slug), 1, 1)).answerMs);
    // What is compiled on first use.
    await sender.closedLoop(world.path(slug), 5, 1);
    const before = await commands();
    const { answerMs, refused } = await sender.closedLoop(world.path(slug), events, 1);
    if (refused > 0) throw new Error(`${refused} events were refused`);
    counted = (await commands()) - before;
    warm.push(...answerMs);
  }
  report(null, `${routes} routes that filter each event; load ${loadavg()[0]?.toFixed(1)}`, [
    ['no such routes: answer p50', ms(percentile(plain.answerMs, 0.5))],
    ['first event of a source: median / longest of three', `${ms(percentile(cold, 0.5))} / ${ms(Math.max(...cold))}`],
    ['next events: answer p50 / p99', `${ms(percentile(warm, 0.5))} / ${ms(percentile(warm, 0.99))}`],
    ['commands of Redis for each event, those in scripts among them', (counted / events).toFixed(1)],
  ]);
  if (percentile(cold, 0.5) > bounds.coldMs || percentile(warm, 0.5) > bounds.warmMs) process.exitCode = 1;
} finally {
  await sender.close();
  await world.stop();
}
