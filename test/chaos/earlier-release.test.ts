import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { checkShards } from '../../src/data/check/shard-check.ts';
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
import { verifies } from '../support/webhook-verification.ts';

/**
 * Workers of an earlier release beside settings that it lacks: what docs/operations.md (Thin events, Ordered delivery, Messages that expire),
 * docs/headers.md and docs/sources.md (Scheduled events) describe for a rolling upgrade.
 */
const unknownSettings: readonly Edit[] = [
  ['src/delivery/targets/http/http-plan.ts', "const isThin = http.payloadForm === 'thin';", 'const isThin = Boolean(0);'],
  ['src/delivery/targets/http/http-plan.ts', 'ownTemplates(http.headerTemplates,', 'ownTemplates(undefined,'],
  ['src/delivery/plans/delivery-plan.ts', 'const inOrder = destination.ordered === true;', 'const inOrder = Boolean(0);'],
  // Entries of the outbox are carried without their times.
  ['src/data/queue/outbox-read.lua', 'if not f[F.outbox.times] then', 'if true then'],
  ['src/data/queue/promote.lua', 'moved = moved + expire_messages()', "call('ZREM', P .. 'waiting', limiter)"],
];
/** Field of a message with its expiry. */
const unknownFields = [['F.message.expires_ms', "'not known'"]] as const;
const shards = 4;
const prefix = 'posthorn:';
const key = `ph_${'k'.repeat(52)}`;
const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const paths = ['/plain', '/thin', '/templates', '/ordered', '/late'] as const;
type Path = (typeof paths)[number];

type Release = 'earlier' | 'this';
let earlier: ReleaseCopy;
let redis: RedisServer;
let receiver: Receiver;
let api: RoleProcess;
let takers: Record<Release, RoleProcess>;
const workers: RoleProcess[] = [];
const processes = new Set<RoleProcess>();
const destinations = new Map<Path, string>();
/** By the path of the destination and the number of the event. */
const attempts = new Map<string, ReceivedRequest[]>();
const delivered = new Map<string, ReceivedRequest[]>();
let sent = 0;

/** The first attempt at `/late` fails. */
function answer(response: ServerResponse, _: number, request: ReceivedRequest): void {
  const number = numberOf(request);
  const place = `${request.path} ${number}`;
  const made = [...(attempts.get(place) ?? []), request];
  attempts.set(place, made);
  const fails = request.path === '/late' && made.length === 1;
  if (!fails) delivered.set(place, [...(delivered.get(place) ?? []), request]);
  response.writeHead(fails ? 500 : 204).end();
}

/** A thin event has no payload: events are distinguished by their header. */
function numberOf({ headers }: ReceivedRequest): number {
  return Number(headers['x-number']);
}

async function start(release: Release, role: string, more: Record<string, string> = {}): Promise<RoleProcess> {
  const environment = { ...installationEnvironment(redis.url, shards), POSTHORN_PUBLIC_URL: 'https://hooks.example.com', ...more };
  const process = await startRole(release === 'earlier' ? earlier.file : thisRelease, role, environment);
  processes.add(process);
  return process;
}

async function work(...releases: Release[]): Promise<void> {
  for (const { program } of workers.splice(0)) await program.stop();
  for (const release of releases) workers.push(await readyRole(await start(release, 'delivery')));
}

// biome-ignore lint/suspicious/noExplicitAny: answers of the API, of which each test reads some fields.
async function call(method: string, path: string, { body, of = api }: { body?: object; of?: RoleProcess } = {}): Promise<any> {
  const headers = { 'x-api-key': key, 'content-type': 'application/json' };
  const response = await fetchProgrammed(`http://127.0.0.1:${of.port}/api/${path}`, {
    method,
    headers,
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return JSON.parse(text);
}

const payloadOf = (number: number): string => JSON.stringify({ number });

/** Returns the numbers of the events. */
async function send(count: number, { to = 'this', headers = {} }: { to?: Release; headers?: Record<string, string> } = {}) {
  return await Promise.all(
    Array.from({ length: count }, async () => {
      const number = ++sent;
      const url = `http://127.0.0.1:${takers[to].port}/ingest/default/orders`;
      await sendEvent(url, number, payloadOf(number), { 'x-number': String(number), ...headers });
      return number;
    }),
  );
}

const placesOf = (numbers: readonly number[], among: readonly Path[] = paths) =>
  numbers.flatMap((number) => among.map((path) => `${path} ${number}`));
async function arrived(numbers: readonly number[], among: readonly Path[] = paths): Promise<void> {
  const places = placesOf(numbers, among);
  await eventually('all that was accepted to arrive', 90_000, () => places.every((place) => delivered.has(place)));
  for (const place of places) expect([place, delivered.get(place)?.length]).toEqual([place, 1]);
}

const requestOf = (path: Path, number: number): ReceivedRequest => {
  const [request] = delivered.get(`${path} ${number}`) ?? [];
  if (request === undefined) throw new Error(`event ${number} has not arrived at ${path}`);
  return request;
};
const isThin = (request: ReceivedRequest): boolean => typeof JSON.parse(request.body.toString()).url === 'string';

/** The payload form of the last attempt at the destination. */
async function formToldOf(path: Path, request: ReceivedRequest): Promise<string> {
  const { attemptDetails } = await call('GET', `deliveries/${request.headers['webhook-id']}`);
  expect([path, attemptDetails.length]).toEqual([path, 1]);
  return attemptDetails[0].payloadForm;
}

/** Ids of the last messages of the destination, in the order in which its shard has taken them: events come to it from the shards of their first targets. */
async function acceptedInTurn(path: Path): Promise<string[]> {
  const { data } = await call('GET', `deliveries?destinationId=${destinations.get(path)}&limit=100`);
  return data.map(({ id }: { id: string }) => id).toReversed();
}

/** What expired of the events. */
async function expired(): Promise<number[]> {
  const { data } = await call('GET', `deliveries?destinationId=${destinations.get('/late')}&status=dlq&limit=100`);
  for (const { deadLetterReason } of data) expect(deadLetterReason).toBe('expired');
  const events = await Promise.all(data.map(({ eventId }: { eventId: string }) => call('GET', `events/${eventId}`)));
  return events.map(({ payload }) => payload.number);
}

async function settled(): Promise<void> {
  const installation = { redis: redis.client, prefix, shards };
  await eventually('all messages to be settled', 60_000, async () => (await checkShards(installation)).unfinished === 0);
}

beforeAll(async () => {
  earlier = copyRelease({ version: '0.0.9', edits: unknownSettings, words: unknownFields });
  [redis, receiver] = await Promise.all([startRedis(), startReceiver(answer)]);
  const standalone = await start('this', 'standalone', { POSTHORN_DATA_DIR: join(earlier.folder, 'data'), POSTHORN_API_KEY: key });
  await standalone.program.waitForOutput(/^posthorn ready/m, 180_000);
  const create = (path: string, body: object) => call('POST', path, { body, of: standalone });
  const { id: sourceId } = await create('sources', { name: 'Orders', dedupStrategy: 'idempotency_key' });
  const own: Record<Path, object> = {
    '/plain': {},
    '/thin': { payloadForm: 'thin', signingSecret: secret },
    '/templates': { headerTemplates: { 'X-Order': 'order {{ payload.number }}' } },
    '/ordered': { ordered: true },
    // The second attempt would be made after the deadline.
    '/late': { expiresAfterSeconds: 4, retryPolicy: { maxRetries: 5, initialDelay: 8000, maxDelay: 8000, backoffMultiplier: 1 } },
  };
  for (const path of paths) {
    const { id } = await create('destinations', { name: `Destination ${path}`, url: receiver.url + path, ...own[path] });
    destinations.set(path, id);
    await create('routes', { name: `Route ${path}`, sourceId, destinationIds: [id], circuitFailureThreshold: 100 });
  }
  await standalone.program.stop();
  api = await start('this', 'api');
  takers = { earlier: await start('earlier', 'ingest'), this: await start('this', 'ingest') };
  await Promise.all([await start('this', 'controller'), api, ...Object.values(takers)].map(readyRole));
}, 600_000);
afterAll(async () => {
  await Promise.all([...processes].map(({ program }) => program.stop()));
  await Promise.all([redis?.stop(), receiver?.close()]);
  earlier?.remove();
});

test('an earlier worker alone loses nothing: it sends payloads in place of links, without templates and deadlines, and the attempts report it', async () => {
  await work('earlier');
  const numbers = await send(10);
  await arrived(numbers);
  await settled();
  for (const number of numbers) {
    const request = requestOf('/thin', number);
    expect(request.body.toString()).toBe(payloadOf(number));
    expect(verifies(request, secret)).toBe(true);
    expect(await formToldOf('/thin', request)).toBe('full');
    expect(requestOf('/templates', number).headers).not.toHaveProperty('x-order');
    expect(attempts.get(`/late ${number}`)).toHaveLength(2);
  }
}, 600_000);

test('workers of both deliver all; each thin message has one of the two forms, and its attempt says which', async () => {
  await work('earlier', 'this');
  const seen = new Set<string>();
  await eventually('messages in both forms', 120_000, async () => {
    const numbers = await send(20);
    await arrived(numbers, ['/plain', '/thin', '/templates', '/ordered']);
    for (const number of numbers) {
      const request = requestOf('/thin', number);
      if (!isThin(request)) expect(request.body.toString()).toBe(payloadOf(number));
      expect(verifies(request, secret)).toBe(true);
      const form = isThin(request) ? 'thin' : 'full';
      expect(await formToldOf('/thin', request)).toBe(form);
      seen.add(form);
      const order = requestOf('/templates', number).headers['x-order'];
      expect([undefined, `order ${number}`]).toContain(order);
    }
    return seen.size === 2;
  });
  await settled();
  const given = new Set(await expired());
  for (let number = 1; number <= sent; number++)
    expect([number, given.has(number) !== delivered.has(`/late ${number}`)]).toEqual([number, true]);
}, 600_000);

test('a worker of this release that takes over keeps form, templates, order and deadlines', async () => {
  await work('this');
  const numbers: number[] = [];
  for (let i = 0; i < 10; i++) numbers.push(...(await send(1)));
  await arrived(numbers, ['/plain', '/thin', '/templates', '/ordered']);
  await settled();
  const given = await expired();
  const idOf = (place: string): unknown => delivered.get(place)?.[0]?.headers['webhook-id'];
  const places = placesOf(numbers, ['/ordered']);
  const arrivedInTurn = [...delivered.keys()].filter((place) => places.includes(place)).map(idOf);
  expect(arrivedInTurn).toEqual((await acceptedInTurn('/ordered')).slice(-numbers.length));
  for (const number of numbers) {
    expect(isThin(requestOf('/thin', number))).toBe(true);
    expect(requestOf('/templates', number).headers['x-order']).toBe(`order ${number}`);
    // On a busy machine it may expire before its first attempt.
    expect(attempts.get(`/late ${number}`)?.length ?? 0).toBeLessThanOrEqual(1);
    expect([number, given.includes(number)]).toEqual([number, true]);
  }
  expect((await checkShards({ redis: redis.client, prefix, shards })).findings).toEqual([]);
}, 600_000);

test('a message that an earlier process carries to another shard is sent at once in place of its time; nothing is lost', async () => {
  await work('this');
  const delaySeconds = 8;
  const records = await redis.client.hgetall(`${prefix}{cfg}:rec:destination`);
  const shardOf = (path: Path): number => JSON.parse(records[destinations.get(path) ?? ''] ?? '{}').shard;
  const among = ['/plain', '/thin', '/templates', '/ordered'] as const;
  expect(new Set(among.map(shardOf)).size).toBeGreaterThan(1);
  for (const to of ['earlier', 'this'] as const) {
    const [number = 0] = await send(1, { to, headers: { 'x-posthorn-delay-seconds': String(delaySeconds) } });
    const sentAtMs = Date.now();
    const arrivedAtMs = new Map<Path, number>();
    await eventually('all to arrive', 60_000, () => {
      for (const path of among)
        if (delivered.has(`${path} ${number}`) && !arrivedAtMs.has(path)) arrivedAtMs.set(path, Date.now() - sentAtMs);
      return arrivedAtMs.size === among.length;
    });
    const early = among.filter((path) => (arrivedAtMs.get(path) ?? 0) < delaySeconds * 1000 - 2000);
    const inTime = among.filter((path) => !early.includes(path));
    if (to === 'this') expect(early).toEqual([]);
    else {
      expect(early.length).toBeGreaterThan(0);
      // What was made where the event was taken has its time.
      expect(new Set(inTime.map(shardOf)).size).toBeLessThanOrEqual(1);
    }
    await arrived([number], among);
  }
  await settled();
}, 600_000);
