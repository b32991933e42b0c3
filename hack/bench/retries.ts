// What a wall of retries does: their lateness, and the latency of a healthy destination at 200/s beside them.
//   node hack/bench/retries.ts [retries]
// Every message fails once and is due again 76 to 114 s later, when all have failed once: first attempts take 22 s, so retries come within a
// minute. Half of them fail, too. The circuit stays closed.
import { waitUntil } from '../../test/support/wait-until.ts';
import { startFailingReceiver } from './lib/failing-receiver.ts';
import { exactDelivery, ms, percentile, perSecond, report } from './lib/report.ts';
import { startSink } from './lib/sink.ts';
import { bareCeiling, Sender } from './lib/traffic.ts';
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
const sender = new Sender(world.api, 64);
try {
  const ceiling = await bareCeiling(healthy.origin, 20_000, 64);
  healthy.reset();
  await sender.closedLoop(world.path('healthy'), 1000, 16);
  await waitUntil('the warm-up', 10_000, () => (healthy.arrivals.size >= 1000 ? true : undefined));
  const measure = async (seconds: number): Promise<{ p99: number; lost: number }> => {
    healthy.reset();
    const { refused } = await sender.openLoop(world.path('healthy'), rate, seconds);
    const accepted = rate * seconds - refused;
    await waitUntil('fresh traffic', 60_000, () => (healthy.arrivals.size >= accepted ? true : undefined)).catch(() => undefined);
    return { p99: percentile(healthy.latenciesMs, 0.99), lost: exactDelivery([healthy], accepted).lost };
  };
  const alone = await measure(aloneSeconds);
  const { refused } = await sender.closedLoop(world.path('failing'), retries, 64);
  await waitUntil('the first attempts', 60_000, () => (failing.firstAttempts() >= retries - refused ? true : undefined));
  const waiting = await world.redis.client.zrangebyscore(`${world.prefix}{s0}:due`, '-inf', '+inf', 'WITHSCORES');
  /** By webhook-id: when the retry is due, in ms since the epoch. */
  const due = new Map<string, number>();
  for (let i = 0; i < waiting.length; i += 2) due.set(`msg_00${waiting[i]?.split(' ')[1]}`, Number(waiting[i + 1]));
  const first = Math.min(...due.values());
  const last = [...due.values()].reduce((latest, at) => Math.max(latest, at), 0);
  await waitUntil('the first retry', 120_000, () => (failing.retries() > 0 ? true : undefined));
  const beside = await measure(Math.ceil((last - first) / 1000));
  await waitUntil('all retries', 120_000, () => (failing.retries() >= due.size ? true : undefined)).catch(() => undefined);
  const latenessMs = (await failing.told()).map(([webhookId, atMs]) => atMs - (due.get(webhookId) ?? 0));
  report('retries', `${due.size} retries due within ${((last - first) / 1000).toFixed(0)} s, ${rate}/s to a healthy destination`, [
    ['bare undici loop', perSecond(ceiling)],
    ['lateness of retries p50 / p99', `${ms(percentile(latenessMs, 0.5))} / ${ms(percentile(latenessMs, 0.99))}`],
    ['healthy p99 alone / beside them', `${ms(alone.p99)} / ${ms(beside.p99)} (${(beside.p99 / alone.p99).toFixed(2)} times)`],
    ['lost: healthy / retries', `${alone.lost + beside.lost} / ${due.size - latenessMs.length}`],
  ]);
} finally {
  await sender.close();
  await world.stop();
  healthy.close();
  await failing.close();
}
