// How many messages a second ingest makes of events for many destinations:
//   node hack/bench/fan-out.ts [events] [targets]
// No worker runs: what is measured is the way from the sender into the queues.
import { waitUntil } from '../../test/support/wait-until.ts';
import { ms, percentile, perSecond, report } from './lib/report.ts';
import { startSink } from './lib/sink.ts';
import { bareCeiling, payloadBytes, Sender } from './lib/traffic.ts';
import { startWorld } from './lib/world.ts';

const [events = 3000, targets = 100] = process.argv.slice(2).map(Number);

const sink = await startSink();
const world = await startWorld({ lanes: [{ slug: 'orders', urls: Array.from({ length: targets }, () => sink.origin) }], workers: 0 });
const sender = new Sender(world.api, 64);
const unfinished = async (): Promise<number> => Number(await world.redis.client.hget(`${world.prefix}{s0}:ctl`, 'open'));
try {
  const ceiling = await bareCeiling(sink.origin, 20_000, 64);
  await sender.closedLoop(world.path('orders'), 100, 64);
  const before = await unfinished();
  const begin = performance.now();
  const { seconds, refused, answerMs } = await sender.closedLoop(world.path('orders'), events, 64);
  const expected = before + (events - refused) * targets;
  await waitUntil('all messages to be queued', 60_000, async () => ((await unfinished()) >= expected ? true : undefined));
  const messages = ((events - refused) * targets) / ((performance.now() - begin) / 1000);
  report('fan-out', `${events} events for ${targets} targets each, 64 senders, ${payloadBytes} bytes`, [
    ['bare undici loop', perSecond(ceiling)],
    ['events', perSecond(events / seconds)],
    ['messages', perSecond(messages)],
    ['answer of ingest p50 / p99', `${ms(percentile(answerMs, 0.5))} / ${ms(percentile(answerMs, 0.99))}`],
    ['refused / queued too many', `${refused} / ${(await unfinished()) - expected}`],
  ]);
} finally {
  await sender.close();
  await world.stop();
  sink.close();
}
