// Sending events to webhook endpoints: throughput beside ingest, events for very many endpoints, and a million endpoints in the store.
//   node hack/bench/send-event.ts [events] [endpoints of the largest event] [endpoints in the store] [seconds] [report 0/1] [core of Redis 0/1]
// 0 events, or 0 endpoints, leave that part out. Sender, receiver, Redis and Posthorn share the cores; with 1 Redis has the first one to
// itself (root), so that a script takes as long as it takes and is not interrupted by them.
import { execFileSync } from 'node:child_process';
import { cpus } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { RedisWebhookStore } from '../../src/data/webhooks/redis-webhook-store.ts';
import { commandConnection } from '../../src/redis/connection.ts';
import { systemClock } from '../../src/runtime/system-clock.ts';
import { eventually } from '../../test/support/eventually.ts';
import { silentLogger } from '../../test/support/logger.ts';
import { ceilingRows, measureCeilings } from './lib/ceilings.ts';
import { type Customers, endpointsPerApplication, fillCustomers, subscribedTypes } from './lib/customers.ts';
import { startEndpoints } from './lib/endpoints.ts';
import { exactDelivery, exactDeliveryOf, exactnessRow, settled } from './lib/exact-delivery.ts';
import { processorRow, processorSeconds, residentMb } from './lib/processes.ts';
import { ms, percentile, perSecond, report } from './lib/report.ts';
import { startSink } from './lib/sink.ts';
import { type SlowScripts, watchSlowScripts } from './lib/slow-scripts.ts';
import { type Envelope, joined, payloadBytes, Sender, type Sent } from './lib/traffic.ts';
import { encryptionKey, type Lane, startWorld, type World } from './lib/world.ts';

const [events = 20_000, largest = 100_000, stored = 1_000_000, seconds = 30, isKept = 1, hasOwnCore = 0] = process.argv
  .slice(2)
  .map(Number);
const senders = 64;
const rounds = 3;
const fewer = 1000;
const eventsOfFewer = 100;
const rate = 500;
const otherRate = 50;
const shards = 16;
const maxWaitMs = 600_000;
/** Higher than what is sent. */
const rateLimits = { perSecond: 1_000_000, perMinute: 10_000_000, perHour: 100_000_000 };

type Rows = [string, string][];
const p50p99 = (values: readonly number[]): string => `${ms(percentile(values, 0.5))} / ${ms(percentile(values, 0.99))}`;

/** Where Redis runs. */
const place = hasOwnCore === 1 ? isolate : undefined;

async function sendingWorld(options: {
  eventTypes: string[];
  sinkOrigin: string;
  shards: number;
  workers: number;
  organization?: Lane['organization'];
}): Promise<World> {
  const { organization } = options;
  const world = await startWorld({
    lanes: [{ slug: 'orders', urls: [options.sinkOrigin], ...(organization && { organization }) }],
    eventTypes: options.eventTypes,
    workers: options.workers,
    environment: { POSTHORN_SHARDS: String(options.shards), POSTHORN_ALLOW_INSECURE_ENDPOINTS: 'true' },
  });
  place?.(world.redis.pid);
  return world;
}

function senderOf(world: World, envelope: Envelope['around'], connections = senders): Sender {
  return new Sender(world.api, connections, { headers: world.credentials, around: envelope });
}

const ofType =
  (eventType: string) =>
  (payload: string): string =>
    `{"eventType":"${eventType}","payload":${payload}}`;

async function withStore<T>(world: World, use: (store: RedisWebhookStore) => Promise<T>): Promise<T> {
  // On a machine that is busy otherwise nothing must be lost with one slow answer.
  const redis = commandConnection(world.redis.url, { commandTimeoutMs: 60_000 });
  await redis.connect();
  try {
    return await use(new RedisWebhookStore({ redis, prefix: world.prefix, clock: systemClock, logger: silentLogger }));
  } finally {
    redis.disconnect();
  }
}

function fill(world: World, options: { endpoints: number; eventTypes: readonly string[]; origin: string }): Promise<Customers> {
  const { endpoints, origin } = options;
  const eventTypes = options.eventTypes.map(idOf);
  const url = (application: number, endpoint: number): string => `${origin}${pathOf(application * endpointsPerApplication + endpoint)}`;
  const { shards: ofWorld } = world;
  return withStore(world, (store) =>
    fillCustomers(store, { org: 'org_a', endpoints, eventTypes, shards: ofWorld, encryptionKey, rateLimits, url }),
  );
}

/** One of the endpoints to an event type more; answers its path. */
async function subscribe(world: World, { endpoints }: Customers, eventType: string): Promise<string> {
  const endpoint = Math.floor(endpoints.length / 2);
  const endpointId = endpoints[endpoint] ?? '';
  await withStore(world, (store) => store.createSubscription({ org: 'org_a', endpointId, eventTypeId: idOf(eventType) }));
  return pathOf(endpoint);
}

/** Path of the endpoint at that index. */
function pathOf(endpoint: number): string {
  return `/customers/${Math.floor(endpoint / endpointsPerApplication)}/hooks/${endpoint % endpointsPerApplication}`;
}

const idOf = (eventType: string): string => `etp_${eventType}`;

async function redisSeconds({ redis }: World): Promise<number> {
  const info = await redis.client.info('cpu');
  return Number(/used_cpu_user:([\d.]+)/.exec(info)?.[1]) + Number(/used_cpu_sys:([\d.]+)/.exec(info)?.[1]);
}

/** Events to one endpoint, and the same through one route; no worker runs until both are stored. */
async function besideIngest(): Promise<Rows> {
  const [sink, endpoints] = [await startSink(), await startEndpoints()];
  const world = await sendingWorld({ eventTypes: ['order.paid'], sinkOrigin: sink.origin, shards: 1, workers: 0 });
  const [ingest, send] = [new Sender(world.ingest, senders), senderOf(world, ofType('order.paid'))];
  const ways = [
    { name: 'ingest', sender: ingest, path: world.path('orders'), program: world.programs.ingest },
    { name: 'send-event', sender: send, path: '/api/send-event', program: world.programs.api },
  ].map((way) => ({ ...way, perSecond: [] as number[], own: 0, redis: 0, answerMs: [] as number[], sent: [] as Sent[] }));
  try {
    const customers = await fill(world, { endpoints: 10, eventTypes: ['order.refunded'], origin: endpoints.sink.origin });
    const paths = new Set([await subscribe(world, customers, 'order.paid')]);
    const ceilings = await measureCeilings(sink.origin, 20_000, senders, place);
    sink.reset();
    for (const { sender, path, sent } of ways) sent.push(await sender.closedLoop(path, 2000, senders));
    for (let round = 0; round < rounds; round++) {
      for (const way of ways) {
        const [own, redis] = [processorSeconds(way.program.pid), await redisSeconds(world)];
        const sent = await way.sender.closedLoop(way.path, events, senders);
        way.own += processorSeconds(way.program.pid) - own;
        way.redis += (await redisSeconds(world)) - redis;
        way.perSecond.push(events / sent.seconds);
        way.answerMs.push(...sent.answerMs);
        way.sent.push(sent);
      }
    }
    const [throughRoute = 0, throughSend = 0] = ways.map(({ perSecond: each }) => percentile(each, 0.5));
    const [toRoute = [], toEndpoint = []] = ways.map(({ sent }) => sent);
    const accepted = (sent: readonly Sent[]): number => joined(sent).accepted.length;
    await world.startDelivery();
    const [ofRoute, ofEndpoint] = [accepted(toRoute), accepted(toEndpoint)];
    await settled(maxWaitMs, () => sink.arrivals.size >= ofRoute && endpoints.deliveries() >= ofEndpoint);
    const exact = [await exactDelivery([{ sink, sent: toRoute }]), await exactDeliveryOf(() => endpoints.compare(toEndpoint, () => paths))];
    const each = (seconds: number): string => `${((seconds * 1e6) / (rounds * events)).toFixed(0)} µs`;
    return [
      ...ceilingRows(ceilings),
      ['ingest of one route', perSecond(throughRoute)],
      ['send-event to one endpoint', `${perSecond(throughSend)} (${((100 * throughSend) / throughRoute).toFixed(0)} % of ingest)`],
      ...ways.map(({ name, own, redis, answerMs }): [string, string] => [
        `${name}: answer p50 / p99; processor of its process, of Redis, per event`,
        `${p50p99(answerMs)}; ${each(own)}, ${each(redis)}`,
      ]),
      ...ways.map(({ name, sent }): [string, string] => [`${name}: refused`, String(joined(sent).refused)]),
      ...exact.map((each, i) => exactnessRow(each, ways[i]?.name)),
    ];
  } finally {
    await Promise.all([ingest.close(), send.close()]);
    await world.stop();
    for (const each of [sink, endpoints.sink]) each.close();
  }
}

/** Events for 1,000 endpoints, and one for very many, beside an event now and then of another organization. */
async function fanOut(): Promise<Rows> {
  const [sink, endpoints] = [await startSink(), await startEndpoints()];
  const world = await sendingWorld({
    eventTypes: ['for.fewer', 'for.all'],
    sinkOrigin: sink.origin,
    shards,
    workers: 1,
    organization: { id: 'org_b', slug: 'other' },
  });
  const other = new Sender(world.ingest, senders);
  const rows: Rows = [];
  const otherFor = async (during: Promise<unknown>): Promise<Sent> => {
    const sent: Sent[] = [];
    let isOver = false;
    void during.finally(() => (isOver = true)).catch(() => undefined);
    while (!isOver) sent.push(await other.openLoop(world.path('orders'), otherRate, 1));
    await during;
    return joined(sent);
  };
  const otherRows = async (what: string, sent: Sent): Promise<Rows> => [
    [`${what}: other traffic at ${otherRate}/s, answer p50 / p99`, p50p99(sent.answerMs)],
    [`${what}: other traffic, sender → receiver p50 / p99`, p50p99(sink.latenciesMs)],
    [`${what}: other traffic, refused`, String(sent.refused)],
    exactnessRow(await exactDelivery([{ sink, sent: [sent] }]), `${what}: other traffic`),
  ];
  const reset = (): void => {
    sink.reset();
    endpoints.reset();
  };
  const pathsOf = (count: number, prefix: string): Set<string> => new Set(Array.from({ length: count }, (_, i) => `${prefix}${pathOf(i)}`));
  try {
    await fill(world, { endpoints: fewer, eventTypes: ['for.fewer'], origin: endpoints.sink.origin });
    await fill(world, { endpoints: largest, eventTypes: ['for.all'], origin: `${endpoints.sink.origin}/all` });
    rows.push(...ceilingRows(await measureCeilings(sink.origin, 20_000, senders, place)));
    sink.reset();
    const warmUp = await other.closedLoop(world.path('orders'), 500, 8);
    await exactDelivery([{ sink, sent: [warmUp] }]);
    reset();
    const alone = await otherFor(sleep(seconds * 1000));
    rows.push(...(await otherRows('alone', alone)));
    const toFewer = pathsOf(fewer, '');
    for (const [eventType, count, paths, isPaced] of [
      ['for.fewer', eventsOfFewer, toFewer, true],
      ['for.fewer', eventsOfFewer, toFewer, false],
      ['for.all', 1, pathsOf(largest, '/all'), true],
    ] as const) {
      const of = paths.size;
      const sender = senderOf(world, ofType(eventType), 1);
      reset();
      await sender.closedLoop('/api/send-event', 1, 1);
      await eventually('the first one to be delivered', maxWaitMs, () => endpoints.deliveries() >= of);
      reset();
      const slowScripts = await watchSlowScripts(world.redis);
      const meter = world.meterProcessor();
      const begin = performance.now();
      const parts: Sent[] = [];
      const allDelivered = async (): Promise<void> => {
        const atOnce = isPaced ? 1 : count;
        for (let begun = 0; begun < count; begun += atOnce) {
          parts.push(await sender.closedLoop('/api/send-event', atOnce, 1));
          const expected = joined(parts).accepted.length * of;
          await settled(maxWaitMs, () => endpoints.deliveries() >= expected);
        }
      };
      const beside = await otherFor(allDelivered());
      const took = (performance.now() - begin) / 1000;
      const processor = meter(endpoints.deliveries() + sink.arrivals.size);
      const sent = joined(parts);
      const exact = await exactDeliveryOf(() => endpoints.compare([sent], () => paths), 2000);
      const what = `${count} × ${of} endpoints${isPaced ? '' : ', without a pause'}`;
      rows.push(
        [`${what}: answer of send-event p50 / p99`, p50p99(sent.answerMs)],
        [`${what}: all delivered in`, `${took.toFixed(1)} s (${perSecond((count * of) / took)})`],
        processorRow(processor, `${what}, with the other traffic`),
        [`${what}: refused`, String(sent.refused)],
        exactnessRow(exact, what),
        [`${what}: scripts above 5 ms, longest`, shown(await slowScripts())],
        ...(await otherRows(what, beside)),
      );
      await sender.close();
    }
    return rows;
  } finally {
    await other.close();
    await world.stop();
    for (const each of [sink, endpoints.sink]) each.close();
  }
}

function shown({ slow, longest }: SlowScripts): string {
  const some = longest.slice(0, 5).map(([name, took]) => `${name} ${ms(took)}`);
  return `${slow}; ${some.join(', ') || 'none above 1 ms'}`;
}

/** Beside very many endpoints: events for one of them, events sent to one customer, lists, memory, and a start of the api process. */
async function amongMany(): Promise<Rows> {
  const endpoints = await startEndpoints();
  const { origin } = endpoints.sink;
  const eventTypes = Array.from({ length: 100 }, (_, i) => `of.many${i}`);
  const world = await sendingWorld({ eventTypes: ['of.one', ...eventTypes], sinkOrigin: origin, shards, workers: 1 });
  try {
    const customers = await fill(world, { endpoints: stored, eventTypes, origin });
    const { applications } = customers;
    const toOne = new Set([await subscribe(world, customers, 'of.one')]);
    const any = (list: readonly unknown[]): number => Math.floor(Math.random() * list.length);
    /** Where an event has to come that was sent to a customer. */
    const toCustomer = new Map<number, Set<string>>();
    const sent: Sent[] = [];
    const startedAt = await world.restartApi();
    const first = senderOf(world, ofType('of.one'), 1);
    await eventually('the first event to be taken', 60_000, async () => {
      const one = await first.closedLoop('/api/send-event', 1, 1);
      sent.push(one);
      return one.refused === 0;
    });
    const coldStartMs = performance.now() - startedAt;
    const rows: Rows = [
      ['start of the api process until it has taken the first event', ms(coldStartMs)],
      ['resident memory of the api process after its start', `${residentMb(world.programs.api.pid).toFixed(0)} MB`],
    ];
    const ways: [string, Envelope['around']][] = [
      ['for one of them', ofType('of.one')],
      [
        'to one customer',
        (payload, number) => {
          const [application, eventType] = [any(applications), eventTypes[any(eventTypes)] ?? ''];
          const all = Array.from({ length: endpointsPerApplication }, (_, k) => application * endpointsPerApplication + k);
          toCustomer.set(number, new Set(all.filter((i) => subscribedTypes(eventTypes, i).includes(eventType)).map(pathOf)));
          return `{"eventType":"${eventType}","applicationId":"${applications[application]}","payload":${payload}}`;
        },
      ],
    ];
    for (const [what, envelope] of ways) {
      const sender = senderOf(world, envelope);
      sent.push(await sender.openLoop('/api/send-event', rate, 3));
      const slowScripts = await watchSlowScripts(world.redis);
      const ofWay = await sender.openLoop('/api/send-event', rate, seconds);
      const { answerMs, refused } = ofWay;
      sent.push(ofWay);
      rows.push(
        [`${rate}/s ${what}: answer p50 / p99, refused`, `${p50p99(answerMs)}, ${refused}`],
        [`${rate}/s ${what}: scripts above 5 ms, longest`, shown(await slowScripts())],
      );
      await sender.close();
    }
    await first.close();
    rows.push(['resident memory of the api process at the end', `${residentMb(world.programs.api.pid).toFixed(0)} MB`]);
    for (const path of ['webhook-endpoints', 'webhook-subscriptions', 'webhook-applications'])
      rows.push([`page of 100 ${path}, p99`, ms(percentile(await pageTimes(world, `/api/${path}`), 0.99))]);
    const unfinished = async (): Promise<number> => {
      const open = await Promise.all(
        Array.from({ length: shards }, (_, shard) => world.redis.client.hget(`${world.prefix}{s${shard}}:ctl`, 'open')),
      );
      return open.reduce((sum, each) => sum + Number(each ?? 0), 0);
    };
    await eventually('all deliveries', maxWaitMs, async () => (await unfinished()) === 0);
    const pathsOf = (number: number): Set<string> => toCustomer.get(number) ?? toOne;
    rows.push(exactnessRow(await exactDeliveryOf(() => endpoints.compare(sent, pathsOf))));
    rows.push(...ceilingRows(await measureCeilings(origin, 20_000, senders, place)));
    return rows;
  } finally {
    await world.stop();
    endpoints.sink.close();
  }
}

async function pageTimes(world: World, path: string): Promise<number[]> {
  const times: number[] = [];
  let cursor: string | null = '';
  for (let i = 0; i < 200 && cursor !== null; i++) {
    const begin = performance.now();
    const answer = await fetch(`${world.api}${path}?limit=100${cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`}`, {
      headers: [[...world.credentials]],
    });
    const { pagination } = (await answer.json()) as { pagination: { nextCursor: string | null } };
    times.push(performance.now() - begin);
    cursor = pagination.nextCursor;
  }
  return times.slice(5);
}

/** Redis has the first core to itself; other processes wait for it. */
function isolate(redisProcessId: number): void {
  runOn('0', redisProcessId);
  execFileSync('chrt', ['--reset-on-fork', '--fifo', '--pid', '1', String(redisProcessId)], { stdio: 'ignore' });
}

/** What it starts from then on runs there, too. */
function runOn(cores: string, processId: number): void {
  execFileSync('taskset', ['--all-tasks', '--cpu-list', '--pid', cores, String(processId)], { stdio: 'ignore' });
}

function tell(name: string, title: string, rows: Rows): void {
  const [ownName, ownTitle] = hasOwnCore === 1 ? [`${name}-own-core`, `${title}, Redis on a core of its own`] : [name, title];
  report(isKept === 1 ? ownName : null, ownTitle, rows);
}

if (hasOwnCore === 1) runOn(`1-${cpus().length - 1}`, process.pid);
if (events > 0) tell('send-event', `send-event, ${payloadBytes} bytes`, await besideIngest());
if (largest > 0) tell('webhook-fan-out', `events for many webhook endpoints, ${payloadBytes} bytes`, await fanOut());
if (stored > 0) tell('many-endpoints', `send-event among ${stored} webhook endpoints, ${payloadBytes} bytes`, await amongMany());
