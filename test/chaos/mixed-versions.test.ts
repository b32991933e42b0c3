import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { version } from '../../src/cmd/version.ts';
import { checkShards } from '../../src/data/check/shard-check.ts';
import { Circuits } from '../../src/data/queue/circuits.ts';
import { fetchProgrammed } from '../support/api-writes.ts';
import { eventually } from '../support/eventually.ts';
import { type ReceivedRequest, type Receiver, startReceiver } from '../support/receiver.ts';
import { type RedisServer, startRedis } from '../support/redis.ts';
import {
  copyRelease,
  type Edit,
  installationEnvironment,
  type ReleaseCopy,
  type RoleProcess,
  readyRole,
  startRole,
  thisRelease,
} from '../support/release-copies.ts';
import { sendEvent } from '../support/send-event.ts';

type Release = 'the later release' | 'this release';
const releases: readonly Release[] = ['the later release', 'this release'];
/** What the later release has beside this one: a field of records, one of events and one of messages, unknown to this one. */
const additions: readonly (readonly [file: string, anchor: string, text: string])[] = [
  ['src/compile/destination.ts', 'v: recordLayoutVersion,', "...({ later: 'known' } as object), "],
  ['src/data/shard/event-text.ts', 't: event.receivedAtMs,', "...({ later: 'known' } as object), "],
  [
    'src/data/queue/includes/new-message.lua',
    "call('HSET', P .. 'm:' .. target.id, F.message.event",
    "call('HSET', P .. 'm:' .. target.id, 'later', 'known') ",
  ],
];
const laterVersion = '99.0.0';
const prefix = 'posthorn:';
const shards = 4;
const key = `ph_${'k'.repeat(52)}`;

let later: ReleaseCopy;
let redis: RedisServer;
let receiver: Receiver;
let apis: Record<Release, RoleProcess>;
let takers: Record<Release, RoleProcess>;
let controller: RoleProcess;
const workers = new Map<Release, RoleProcess>();
const processes = new Set<RoleProcess>();

/** Numbers of requests, by the path of the destination and the number of the event. */
const attempts = new Map<string, number>();
const successes = new Map<string, number>();
const webhookIds = new Map<string, Set<unknown>>();
const broken = new Set<string>();
const hanging = new Map<string, number>();
const accepted: number[] = [];
let sent = 0;
let sourceId: string;
let destinationId: string;

function answer(response: ServerResponse, _: number, { path, body, headers }: ReceivedRequest): void {
  const { number } = JSON.parse(body.toString()) as { number: number };
  const place = `${path} ${number}`;
  const attempt = (attempts.get(place) ?? 0) + 1;
  attempts.set(place, attempt);
  webhookIds.set(place, (webhookIds.get(place) ?? new Set()).add(headers['webhook-id']));
  const hung = hanging.get(path);
  if (hung !== undefined) {
    hanging.set(path, hung + 1);
    return;
  }
  const fails = broken.has(path) || (number % 5 === 0 && attempt === 1);
  if (!fails) successes.set(place, (successes.get(place) ?? 0) + 1);
  response.statusCode = fails ? 500 : 204;
  response.end();
}

async function start(release: Release, role: string, more: Record<string, string> = {}): Promise<RoleProcess> {
  const file = release === 'the later release' ? later.file : thisRelease;
  const process = await startRole(file, role, { ...installationEnvironment(redis.url, shards), ...more });
  processes.add(process);
  return process;
}

async function work(release: Release): Promise<void> {
  workers.set(release, await readyRole(await start(release, 'delivery')));
}

async function stopWorkers(): Promise<void> {
  for (const { program } of workers.values()) await program.stop();
  workers.clear();
}

async function metric(process: RoleProcess | undefined, sample: string): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${process?.opsPort}/metrics`)).text();
  const line = text.split('\n').find((each) => each.startsWith(`${sample} `));
  return Number(line?.slice(sample.length) ?? 0);
}

async function create(api: RoleProcess, path: string, body: object): Promise<string> {
  const headers = { 'x-api-key': key, 'content-type': 'application/json' };
  const response = await fetchProgrammed(`http://127.0.0.1:${api.port}/api/${path}`, {
    method: 'POST',
    headers,
    body: JSON.stringify(body),
  });
  if (response.status !== 201) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return ((await response.json()) as { id: string }).id;
}

/** Returns the id of its destination. */
async function createRoute(api: RoleProcess, path: string): Promise<string> {
  const retryPolicy = { maxRetries: 25, initialDelay: 100, maxDelay: 1000, backoffMultiplier: 2 };
  const id = await create(api, 'destinations', { name: `Destination ${path}`, url: `${receiver.url}${path}`, retryPolicy });
  const circuit = { circuitFailureThreshold: 5, circuitCooldownSeconds: 1, circuitProbeSuccessThreshold: 1 };
  await create(api, 'routes', { name: `Route ${path}`, sourceId, destinationIds: [id], ...circuit });
  return id;
}

/** Half of them to either release. */
async function send(count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    const { port } = takers[i % 2 === 0 ? 'the later release' : 'this release'];
    const number = ++sent;
    await sendEvent(`http://127.0.0.1:${port}/ingest/default/orders`, number, JSON.stringify({ number }));
    accepted.push(number);
  }
}

/** The keys of records, events and messages that have the fields of the later release. */
async function withLaterFields(): Promise<string[]> {
  const found: string[] = [];
  for (const [id, record] of Object.entries(await redis.client.hgetall(`${prefix}{cfg}:rec:destination`)))
    if (JSON.parse(record).later === 'known') found.push(id);
  for (let shard = 0; shard < shards; shard++) {
    for (const key of await redis.client.keys(`${prefix}{s${shard}}:e:*`))
      if ((await redis.client.get(key))?.includes('"later":"known"')) found.push(key);
    for (const key of await redis.client.keys(`${prefix}{s${shard}}:m:*`))
      if ((await redis.client.hget(key, 'later')) === 'known') found.push(key);
  }
  return found;
}

async function allArrived(paths = ['/a', '/b', '/c']): Promise<void> {
  const places = paths.flatMap((path) => accepted.map((number) => `${path} ${number}`));
  await eventually('all that was accepted to arrive', 90_000, () => places.every((place) => successes.has(place)));
}

async function settled(unfinished = 0): Promise<void> {
  const installation = { redis: redis.client, prefix, shards };
  await eventually(
    `all but ${unfinished} messages to be settled`,
    60_000,
    async () => (await checkShards(installation)).unfinished === unfinished,
  );
  expect((await checkShards(installation)).findings).toEqual([]);
}

beforeAll(async () => {
  later = copyRelease({ version: laterVersion, edits: additions.map(([file, anchor, text]): Edit => [file, anchor, text + anchor]) });
  [redis, receiver] = await Promise.all([startRedis(), startReceiver(answer)]);
  const standalone = await start('the later release', 'standalone', {
    POSTHORN_DATA_DIR: join(later.folder, 'data'),
    POSTHORN_API_KEY: key,
  });
  await standalone.program.waitForOutput(/^posthorn ready/m, 180_000);
  sourceId = await create(standalone, 'sources', { name: 'Orders', provider: 'generic', dedupStrategy: 'idempotency_key' });
  destinationId = await createRoute(standalone, '/a');
  for (const path of ['/b', '/c']) await createRoute(standalone, path);
  await standalone.program.stop();
  controller = await start('the later release', 'controller');
  apis = { 'the later release': await start('the later release', 'api'), 'this release': await start('this release', 'api') };
  takers = { 'the later release': await start('the later release', 'ingest'), 'this release': await start('this release', 'ingest') };
  await Promise.all([controller, ...Object.values(apis), ...Object.values(takers)].map(readyRole));
}, 600_000);
afterAll(async () => {
  await Promise.all([...processes].map(({ program }) => program.stop()));
  await Promise.all([redis?.stop(), receiver?.close()]);
  later?.remove();
});
afterEach(() => {
  expect([...successes].filter(([, times]) => times !== 1)).toEqual([]);
  expect([...webhookIds.values()].filter((ids) => ids.size !== 1)).toEqual([]);
});

test.each(releases)(
  'a worker of %s alone delivers what both have taken, and fields that it does not know stay',
  async (release) => {
    await send(40);
    const unknown = await withLaterFields();
    for (const part of ['dst_', '}:e:', '}:m:']) expect([part, unknown.some((key) => key.includes(part))]).toEqual([part, true]);
    await work(release);
    await send(40);
    await allArrived();
    await settled();
    expect(await withLaterFields()).toEqual(expect.arrayContaining(unknown));
    await stopWorkers();
  },
  600_000,
);

test.each(releases)(
  'a worker of %s tests destinations for the api of either release',
  async (release) => {
    await work(release);
    for (const by of releases) {
      const number = `of a test for ${by} by ${release}`;
      const headers = { 'x-api-key': key, 'content-type': 'application/json' };
      const request = { method: 'POST', headers, body: JSON.stringify({ payload: { number } }) };
      const response = await fetch(`http://127.0.0.1:${apis[by].port}/api/destinations/${destinationId}/test`, request);
      expect([response.status, successes.get(`/a ${number}`)]).toEqual([200, 1]);
    }
    await stopWorkers();
  },
  600_000,
);

test('either api reports which version each worker and each process runs, and that a rollout is under way', async () => {
  for (const release of releases) await work(release);
  for (const { port } of Object.values(apis)) {
    const response = await fetch(`http://127.0.0.1:${port}/api/installation`, { headers: { 'x-api-key': key } });
    const { versions, warnings } = (await response.json()) as { versions: object[]; warnings: { message: string }[] };
    const roles = ['api', 'delivery', 'ingest'].map((role) => ({ role, processes: 1 }));
    expect(versions).toEqual([
      { version: laterVersion, workers: 1, processes: expect.arrayContaining(roles) },
      { version, workers: 1, processes: roles },
    ]);
    expect(warnings.map(({ message }) => message)).toContainEqual(expect.stringContaining('Several versions of Posthorn run'));
  }
  await stopWorkers();
}, 600_000);

test('workers of both share the shards, each with scripts of its own that Redis forgets at times', async () => {
  for (const release of releases) await work(release);
  const delivered = 'posthorn_delivery_outcomes_total{outcome="delivered"}';
  await eventually('both to have delivered', 120_000, async () => {
    await send(20);
    await redis.client.script('FLUSH');
    const counts = await Promise.all(releases.map((release) => metric(workers.get(release), delivered)));
    return Math.min(...counts) >= 40;
  });
  await allArrived();
  await settled();
  await stopWorkers();
}, 600_000);

test.each([
  ['the later release', 'this release'],
  ['this release', 'the later release'],
] as const)(
  'what a worker of %s held when it was killed, and a circuit that it had opened, one of %s goes on with',
  async (first, second) => {
    await work(first);
    hanging.set('/a', 0);
    broken.add('/c');
    await send(20);
    const circuits = new Circuits({ redis: redis.client, prefix, shards: () => shards });
    await eventually(
      'requests under way, and an open circuit',
      60_000,
      async () => (hanging.get('/a') ?? 0) > 0 && (await circuits.broken()).length === 1,
    );
    // Those of /b: what has arrived and is not settled would come again.
    await settled(40);
    workers.get(first)?.program.signal('SIGKILL');
    await workers.get(first)?.program.ended;
    hanging.clear();
    broken.clear();
    await work(second);
    await send(20);
    await allArrived();
    await eventually('the circuit to be closed', 60_000, async () => (await circuits.broken()).length === 0);
    await settled();
    await stopWorkers();
  },
  600_000,
);

test('a controller of this release takes over, and workers of both deliver what it publishes', async () => {
  await controller.program.stop();
  controller = await start('this release', 'controller');
  await eventually('it to lead', 60_000, async () => (await metric(controller, 'posthorn_controller_leading')) === 1);
  await createRoute(apis['the later release'], '/d');
  await createRoute(apis['this release'], '/e');
  for (const release of releases) await work(release);
  // Ingest has the source in memory, and receives the routes a moment later.
  await eventually(async () => {
    await send(2);
    const places = [sent - 1, sent].flatMap((number) => ['/d', '/e'].map((path) => `${path} ${number}`));
    await eventually('an event that either has taken to arrive at the new destinations', 20_000, () =>
      places.every((place) => successes.has(place)),
    );
  }, 90_000);
  accepted.length = 0;
  await send(40);
  await allArrived(['/a', '/b', '/c', '/d', '/e']);
  await settled();
}, 600_000);
