// How fast a backlog drains, and how fast ingest alone is:
//   node hack/bench/drain.ts [messages] [targets]
// First ingest alone with 64 senders and a fan-out over all targets, then one worker delivers everything.
import { waitUntil } from '../../test/support/wait-until.ts';
import { exactDelivery, ms, percentile, perSecond, report } from './lib/report.ts';
import { startSink } from './lib/sink.ts';
import { bareCeiling, Sender } from './lib/traffic.ts';
import { startWorld } from './lib/world.ts';

const [messages = 100_000, targets = 10] = process.argv.slice(2).map(Number);
const senders = 64;

const sinks = await Promise.all(Array.from({ length: targets }, () => startSink()));
const lanes = sinks.map(({ origin }, i) => ({ slug: `s${i}`, urls: [origin] }));
const world = await startWorld({ lanes, workers: 0 });
const sender = new Sender(world.api, senders);
try {
  const [first] = sinks;
  if (first === undefined) throw new Error('there are no targets');
  const ceiling = await bareCeiling(first.origin, 20_000, senders);
  first.reset();
  const answerMs: number[] = [];
  let refused = 0;
  const begin = performance.now();
  await Promise.all(
    lanes.map(async ({ slug }) => {
      const sent = await sender.closedLoop(world.path(slug), messages / targets, Math.ceil(senders / targets));
      answerMs.push(...sent.answerMs);
      refused += sent.refused;
    }),
  );
  const ingest = messages / ((performance.now() - begin) / 1000);
  const queuedBytes = Number(/used_memory:(\d+)/.exec(await world.redis.client.info('memory'))?.[1]);
  const arrived = (): number => sinks.reduce((sum, { arrivals }) => sum + arrivals.size, 0);
  await world.startDelivery();
  await waitUntil('the first delivery', 30_000, () => (arrived() > 0 ? true : undefined));
  const beginDrain = performance.now();
  const already = arrived();
  await waitUntil('the last delivery', 300_000, () => (arrived() >= messages - refused ? true : undefined));
  const drained = (messages - refused - already) / ((performance.now() - beginDrain) / 1000);
  const { lost, duplicated } = exactDelivery(sinks, messages - refused);
  report('drain', `${messages} messages, ${targets} targets`, [
    ['bare undici loop', perSecond(ceiling)],
    ['ingest alone', perSecond(ingest)],
    ['answer of ingest p50 / p99', `${ms(percentile(answerMs, 0.5))} / ${ms(percentile(answerMs, 0.99))}`],
    ['Redis bytes per queued message (all of Redis)', (queuedBytes / messages).toFixed(0)],
    ['drain', `${perSecond(drained)} (${((100 * drained) / ceiling).toFixed(0)} % of the ceiling)`],
    ['refused / lost / duplicated', `${refused} / ${lost} / ${duplicated}`],
  ]);
} finally {
  await sender.close();
  await world.stop();
  for (const sink of sinks) sink.close();
}
