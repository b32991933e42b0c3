// What order costs: one target, a backlog, a receiver that answers after about 1 ms, once without and once with order:
//   node hack/bench/ordered.ts [messages with order] [messages without]
// With order the rate is that of one attempt after the other: dequeue, request, answer, settle.
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../../test/support/eventually.ts';
import { measureCeilings } from './lib/ceilings.ts';
import { exactDelivery, exactnessRow, settled } from './lib/exact-delivery.ts';
import { processorRow } from './lib/processes.ts';
import { ms, percentile, perSecond, report } from './lib/report.ts';
import { startSink } from './lib/sink.ts';
import { Sender } from './lib/traffic.ts';
import { startWorld } from './lib/world.ts';

const [withOrder = 5000, withoutOrder = 30_000] = process.argv.slice(2).map(Number);
const answerMs = 1;

interface Run {
  rate: number;
  /** Between two arrivals. */
  gapsMs: number[];
  processor: readonly [string, string];
  exactness: readonly [string, string];
}

async function drain(ordered: boolean, messages: number): Promise<Run & { ceilings: Awaited<ReturnType<typeof measureCeilings>> }> {
  const sink = await startSink((_, response) => void setTimeout(() => response.end(), answerMs));
  const lane = { slug: 'orders', urls: [sink.origin], ...(ordered && { destination: { ordered: true as const } }) };
  const world = await startWorld({ lanes: [lane], workers: 0 });
  const sender = new Sender(world.ingest, 16);
  try {
    const ceilings = await measureCeilings(sink.origin, 5000, ordered ? 1 : 64);
    sink.reset();
    const sent = await sender.closedLoop(world.path('orders'), messages, 16);
    await world.startDelivery();
    await eventually('the first delivery', 30_000, () => sink.arrivals.size > 0);
    // Code that is not compiled yet distorts the rate.
    await sleep(1000);
    const [meter, begin, already] = [world.meterProcessor(), performance.now(), sink.arrivals.size];
    await settled(300_000, () => sink.arrivals.size >= sent.accepted.length);
    const rate = (sink.arrivals.size - already) / ((performance.now() - begin) / 1000);
    const processor = processorRow(meter(sink.arrivals.size - already), ordered ? 'in order' : 'without order');
    const gapsMs = sink.times.slice(already).map((at, i) => at - (sink.times[already + i - 1] ?? at));
    const exactness = exactnessRow(await exactDelivery([{ sink, sent: [sent] }]));
    return { rate, gapsMs, processor, exactness, ceilings };
  } finally {
    await sender.close();
    await world.stop();
    sink.close();
  }
}

const free = await drain(false, withoutOrder);
const inOrder = await drain(true, withOrder);
report('ordered', `one target with a backlog, one worker, a receiver that answers after ${answerMs} ms`, [
  ['bare undici loop, one request at a time', perSecond(inOrder.ceilings.undici)],
  ['without order', perSecond(free.rate)],
  ['in order, one attempt at a time', perSecond(inOrder.rate)],
  ['in order, from one request to the next p50 / p99', `${ms(percentile(inOrder.gapsMs, 0.5))} / ${ms(percentile(inOrder.gapsMs, 0.99))}`],
  free.processor,
  inOrder.processor,
  [`without order: ${free.exactness[0]}`, free.exactness[1]],
  [`in order: ${inOrder.exactness[0]}`, inOrder.exactness[1]],
]);
