import { createWriteStream, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { get, type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pipeline } from 'node:stream/promises';
import { DuckDBInstance } from '@duckdb/node-api';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { eventually } from '../../support/eventually.ts';
import { freePort } from '../../support/ports.ts';
import { startProgram } from '../../support/program.ts';
import { dead, delivered, failure } from '../../support/queue-worker.ts';
import { newWebhookEvent } from '../../support/webhook-messages.ts';
import { idsOf, type MessagesWorld, soon, startMessagesWorld } from './messages-world.ts';

let world: MessagesWorld;
beforeAll(async () => {
  world = await startMessagesWorld();
});
afterAll(() => world.stop());
beforeEach(() => world.clear());

const request = (query = '', key?: string) => world.facade.request('GET', `/api/outbound-messages/export${query}`, { key });
const exported = async (query = '') => (await request(query)).body;

/** An independent reader's rows of a file; `FILE` in the query is replaced by its path. */
async function readBack(query: string, write: (file: string) => unknown): Promise<Record<string, unknown>[]> {
  const directory = mkdtempSync(join(tmpdir(), 'posthorn-export-'));
  try {
    const file = join(directory, 'export');
    await write(file);
    const instance = await DuckDBInstance.create(':memory:');
    const connection = await instance.connect();
    const result = await connection.runAndReadAll(query.replaceAll('FILE', `'${file}'`));
    const rows = result.getRowObjectsJson();
    connection.closeSync();
    instance.closeSync();
    return rows;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

const csvFile = `read_csv(FILE, header = true, all_varchar = true, delim = ',', quote = '"', escape = '"', strict_mode = true)`;

/** The rows of a CSV, every cell as text. */
const csvRows = (text: string) => readBack(`SELECT * FROM ${csvFile}`, (file) => writeFileSync(file, text));

describe('an export', () => {
  test('an export of messages as JSON holds the records of the list', async () => {
    await world.send([await world.endpoint(), await world.endpoint()]);
    await world.end(delivered);
    await world.send([await world.endpoint()]);
    const { status, headers, body } = await request('?type=messages');
    expect([status, headers.get('content-type')]).toEqual([200, 'application/json; charset=utf-8']);
    expect(headers.get('content-disposition')).toMatch(/^attachment; filename="messages-\d{4}-\d\d-\d\d\.json"$/);
    expect(body).toEqual({
      data: (await world.facade.request('GET', '/api/outbound-messages')).body.data,
      pagination: { hasMore: false, nextCursor: null },
      exportedAt: expect.stringMatching(/^\d{4}-/),
    });
    expect(body.data).toHaveLength(3);
  });

  test('an export is of events, as JSON, unless the query says otherwise; payloads are as they were sent, parts are left out', async () => {
    const target = await world.endpoint();
    const payload = Buffer.from('{ "large": 12345678901234567890, "x": 1.50 }');
    const event = newWebhookEvent(world.org, [target], { payload, webhook: { labels: { a: 'b' }, idempotencyKey: 'k' } });
    await world.facade.acceptor.accept(event);
    await world.send([target], { webhook: { partOf: event.id } });
    const { text, body, headers } = await request();
    expect(headers.get('content-disposition')).toContain('filename="events-');
    expect(body.data).toEqual([
      {
        id: event.id,
        organizationId: world.org,
        eventType: 'order.paid',
        labels: { a: 'b' },
        metadata: {},
        idempotencyKey: 'k',
        applicationId: null,
        endpointIds: [],
        deliverAt: null,
        createdAt: new Date(event.receivedAtMs).toISOString(),
        messageCount: 1,
        payload: JSON.parse(payload.toString()),
      },
    ]);
    expect(text).toContain(`"payload":${payload}`);
  });

  test('an export of nothing is an empty list, or the header alone', async () => {
    expect(await exported()).toMatchObject({ data: [], pagination: { hasMore: false, nextCursor: null } });
    const { text, headers } = await request('?format=csv');
    expect(headers.get('content-type')).toBe('text/csv; charset=utf-8; header=present');
    expect(text).toBe('id,eventType,labels,metadata,idempotencyKey,applicationId,endpointIds,deliverAt,createdAt,messageCount,payload\r\n');
  });

  test('as CSV is read back by an independent reader, cells with quotes, commas, line ends and formulas included', async () => {
    const texts = [
      'plain',
      'a,b',
      'say "hi"',
      'two\r\nlines',
      'two\nlines',
      '=1+1',
      '+1',
      '-1',
      '@SUM(A1)',
      "'quoted",
      'ümläut ✓',
      '\ttab',
    ];
    const shown = (value: string) => (/^[=+\-@\t]/.test(value) ? `'${value}` : value);
    const payloads = texts.map((_, i) => (i === 0 ? '-1' : '{"a":1}'));
    for (const [i, value] of texts.entries()) {
      const payload = Buffer.from(payloads[i] ?? '');
      const [id] = await world.send([await world.endpoint()], { payload, webhook: { labels: { value }, idempotencyKey: value } });
      expect(id).toBeDefined();
      await world.end({ type: 'dead', attempt: { ...failure, errorMessage: value }, reason: 'max_retries_exceeded' });
    }
    const messages = await csvRows((await request('?type=messages&format=csv')).text);
    expect(messages.map(({ lastErrorMessage }) => lastErrorMessage)).toEqual(texts.map(shown).reverse());
    expect(messages.map(({ labels }) => JSON.parse(String(labels)).value)).toEqual([...texts].reverse());
    expect(messages[0]).toMatchObject({ status: 'dlq', attempts: '1', nextAttemptAt: null, lastResponseStatus: '500' });
    const events = await csvRows((await request('?format=csv')).text);
    expect(events.map(({ payload }) => payload)).toEqual([...payloads].reverse());
    expect(events.map(({ idempotencyKey }) => idempotencyKey)).toEqual(texts.map(shown).reverse());
  });

  test('filters by status, event type, application and time', async () => {
    const [one, two] = [await world.endpoint(), await world.endpoint()];
    const firstDay = new Date().toISOString().slice(0, 10);
    const early = newWebhookEvent(world.org, [one], { webhook: { applicationId: one.applicationId } });
    await world.facade.acceptor.accept(early);
    await world.end(delivered);
    const lost = newWebhookEvent(world.org, [two], { eventType: 'order.lost' });
    await world.store.deleteEventType(world.org, lost.sourceId, lost.sourceSlug);
    await world.facade.acceptor.accept(lost);
    await world.end(dead);
    const [earlyId, lostId] = [early, lost].map(({ targets }) => targets[0]?.messageId ?? '');
    const ids = async (query: string) => idsOf((await exported(`?${query}`)).data);
    for (const [query, events, messages] of [
      ['', [lost.id, early.id], [lostId, earlyId]],
      ['status=dlq', [lost.id], [lostId]],
      ['status=dlq,success', [lost.id, early.id], [lostId, earlyId]],
      ['status=failed,processing', [], []],
      ['status=success', [early.id], [earlyId]],
      ['status=processing', [], []],
      ['eventType=order.lost', [lost.id], [lostId]],
      [`applicationId=${one.applicationId}`, [early.id], [earlyId]],
      [`applicationId=${two.applicationId}`, [lost.id], [lostId]],
      ['endDate=2020-01-01T00:00:00Z', [], []],
      [`startDate=${firstDay}&endDate=${new Date().toISOString().slice(0, 10)}`, [lost.id, early.id], [lostId, earlyId]],
      ['endDate=2020-01-01', [], []],
      ['startDate=2099-01-01', [], []],
      ['startDate=2020-01-01T00:00:00Z&endDate=2099-01-01T00:00:00Z', [lost.id, early.id], [lostId, earlyId]],
    ] as const) {
      expect([query, await ids(query)]).toEqual([query, events]);
      expect([query, await ids(`type=messages&${query}`)]).toEqual([query, messages]);
    }
  });

  test('an export of messages filters as the list does; of events it refuses what only messages have', async () => {
    const [one, two] = [await world.endpoint(), await world.endpoint()];
    await world.send([one]);
    await world.end(delivered);
    await world.send([two]);
    await world.end(dead);
    await world.send([one]);
    const ids = async (path: string) => idsOf((await world.facade.request('GET', `/api/outbound-messages${path}`)).body.data);
    for (const query of [
      `endpointId=${one.id}`,
      'errorType=http_error',
      'responseStatus=5xx',
      'attemptsMin=1',
      'attemptsMax=0',
      'failedFrom=2020-01-01',
      'failedTo=2020-01-01',
      `endpointId=${two.id}&responseStatus=500,200&status=dlq,success`,
    ]) {
      expect([query, await ids(`/export?type=messages&${query}`)]).toEqual([query, await ids(`?${query}`)]);
      expect((await request(`?${query}`)).status).toBe(400);
      expect((await request(`?type=messages&format=csv&${query}`)).status).toBe(200);
    }
    expect(await ids(`/export?type=messages&endpointId=${one.id}`)).toHaveLength(2);
    expect(await ids('/export?type=messages&responseStatus=5xx')).toHaveLength(1);
    expect((await request('?type=messages&attemptsMin=2&attemptsMax=1')).status).toBe(400);
  });

  test('an export ends at its limit, and continues by its cursor', async () => {
    const target = await world.endpoint();
    const sent: string[] = [];
    for (let i = 0; i < 5; i++) sent.push(...(await world.send([target])));
    const first = await exported('?type=messages&limit=3');
    expect([first.data.length, first.pagination.hasMore]).toEqual([3, true]);
    const rest = await exported(`?type=messages&limit=3&cursor=${first.pagination.nextCursor}`);
    expect(rest.pagination).toEqual({ hasMore: false, nextCursor: null });
    expect(idsOf([...first.data, ...rest.data])).toEqual(sent.reverse());
    expect((await exported('?type=messages&limit=5')).pagination.hasMore).toBe(false);
  });

  test.each([
    ['events', ''],
    ['messages', ''],
    ['messages', '&status=pending'],
    ['events', '&status=pending'],
  ])(
    'an export of %s as CSV%s says in headers that there is more, and continues by its link while others are sent',
    async (type, filter) => {
      const target = await world.endpoint();
      await world.send([target]);
      await world.end(delivered);
      const sent = Array.from({ length: 5 }, () => newWebhookEvent(world.org, [target]));
      for (const event of sent) await world.facade.acceptor.accept(event);
      const expected = sent.map(({ id, targets }) => (type === 'events' ? id : (targets[0]?.messageId ?? ''))).reverse();
      const found: unknown[] = [];
      for (let query = `?type=${type}&format=csv&limit=2${filter}`, files = 1; ; files++) {
        const { text, headers } = await request(query);
        const rows = await csvRows(text);
        found.push(...rows.map(({ id }) => id));
        const link = headers.get('link');
        if (link === null) {
          expect([headers.get('x-has-more'), headers.get('x-next-cursor')]).toEqual(['false', null]);
          break;
        }
        expect([rows.length, headers.get('x-has-more')]).toEqual([2, 'true']);
        const [, next = ''] = /^<([^>]+)>; rel="next"$/.exec(link) ?? [];
        expect(new URLSearchParams(next).get('cursor')).toBe(headers.get('x-next-cursor'));
        expect(files).toBeLessThan(5);
        query = next;
        await world.send([target]);
      }
      expect(found.slice(0, 5)).toEqual(expected);
      expect(found).toHaveLength(filter === '' ? 6 : 5);
    },
  );

  test('an export of events of an application holds those that went to its endpoints, also among others, and those sent to it alone', async () => {
    const [one, two] = [await world.endpoint(), await world.endpoint()];
    const alone = newWebhookEvent(world.org, [], { webhook: { applicationId: one.applicationId } });
    const broadcast = newWebhookEvent(world.org, [two, one]);
    const others = [newWebhookEvent(world.org, [two]), newWebhookEvent(world.org, []), newWebhookEvent(world.org, [two, two])];
    for (const event of [alone, broadcast, ...others]) await world.facade.acceptor.accept(event);
    const { data } = await exported(`?applicationId=${one.applicationId}`);
    expect(idsOf(data)).toEqual([broadcast.id, alone.id]);
    await world.end(delivered);
    expect(idsOf((await exported(`?applicationId=${one.applicationId}&status=success`)).data)).toEqual([broadcast.id]);
    expect((await csvRows((await request(`?applicationId=${one.applicationId}&format=csv`)).text)).map(({ id }) => id)).toEqual(
      idsOf(data),
    );
  });

  test.each(['events', 'messages'] as const)(
    'of %s goes on by its cursor while others are sent, and these end, are archived or pruned: what stays comes once',
    async (type) => {
      const target = await world.endpoint();
      const sent = Array.from({ length: 12 }, () => newWebhookEvent(world.org, [target]));
      const letters: string[] = [];
      for (const [i, event] of sent.entries()) {
        await world.facade.acceptor.accept(event);
        if (i % 2 === 0) await world.end(soon);
        else letters.push(...(await world.end(dead)));
      }
      const ids = sent.map(({ id, targets }) => (type === 'events' ? id : (targets[0]?.messageId ?? ''))).reverse();
      const first = await exported(`?type=${type}&limit=4`);
      expect(idsOf(first.data)).toEqual(ids.slice(0, 4));
      await world.queue.promote();
      expect(await world.end(delivered)).toHaveLength(6);
      expect((await world.facade.request('DELETE', `/api/outbound-messages/dlq/${letters[0]}`)).status).toBe(200);
      await world.prune(3_600_000);
      await world.send([target]);
      const there = idsOf((await exported(`?type=${type}`)).data);
      const rest = await exported(`?type=${type}&limit=50&cursor=${first.pagination.nextCursor}`);
      expect(rest.pagination).toEqual({ hasMore: false, nextCursor: null });
      expect(idsOf(rest.data)).toEqual(ids.slice(4).filter((id) => there.includes(id)));
      expect([there.length, rest.data.length]).toEqual([6, 3]);
    },
  );

  test.each([
    ['format=xml', 'format'],
    ['type=endpoints', 'type'],
    ['limit=0', 'limit'],
    ['limit=50001', 'limit'],
    ['startDate=now', 'startDate'],
    ['startDate=2026-02-30', 'startDate'],
    ['startDate=2026-02-01T00:00:00Z&endDate=2026-01-01T00:00:00Z', 'endDate'],
    ['status=queued', 'status'],
    ['cursor=forged', 'cursor'],
    ['cursor=forged&format=csv', 'cursor'],
  ])('an export with %s is 400', async (query, field) => {
    const { status, body } = await request(`?${query}`);
    expect([status, body.error, Object.keys(body.details)]).toEqual([400, 'Invalid input', [field]]);
  });

  test('an export holds nothing of another organization', async () => {
    await world.send([await world.endpoint()]);
    await world.facade.addOrganization('other');
    const key = await world.facade.addKey('other');
    for (const type of ['events', 'messages']) expect((await request(`?type=${type}`, key)).body.data).toEqual([]);
  });
});

test('50,000 messages are exported whole, as JSON and as CSV', async () => {
  const [count, perEvent] = [50_000, 100];
  const target = await world.endpoint();
  const sent = new Set<string>();
  for (let i = 0; i < count / perEvent; i++)
    for (const id of await world.send(Array.from({ length: perEvent }, () => target))) sent.add(id);
  const { text } = await request('?type=messages&limit=50000');
  const whole = `read_json(FILE, format = 'unstructured', maximum_object_size = ${2 * text.length})`;
  const messages = await readBack(`SELECT unnest(data).id AS id FROM ${whole}`, (file) => writeFileSync(file, text));
  expect(messages).toHaveLength(count);
  expect(new Set(messages.map(({ id }) => id))).toEqual(sent);
  expect(JSON.parse(text).pagination).toEqual({ hasMore: false, nextCursor: null });
  const byDefault = await exported('?type=messages');
  expect([byDefault.data.length, byDefault.pagination.hasMore]).toEqual([10_000, true]);
  const csv = await request('?type=messages&limit=50000&format=csv');
  const rows = await csvRows(csv.text);
  expect(rows).toHaveLength(count);
  expect(new Set(rows.map(({ id }) => id))).toEqual(sent);
}, 600_000);

test('events of 200 MB are exported whole, to a slow reader, too, by a process whose heap could not hold half of them', async () => {
  const [count, atOnce] = [10_000, 200];
  const target = await world.endpoint();
  const payload = Buffer.from(JSON.stringify('x'.repeat(20_478)));
  for (let i = 0; i < count / atOnce; i++) {
    const events = Array.from({ length: atOnce }, () => newWebhookEvent(world.org, [target], { payload }));
    await Promise.all(events.map((event) => world.facade.acceptor.accept(event)));
  }
  const port = await freePort();
  const api = startProgram(['api'], {
    // A half of this holds the program. Without the small semi-space of the image, V8 collects garbage all the time so near to the limit.
    NODE_OPTIONS: '--max-old-space-size=160 --max-semi-space-size=4',
    POSTHORN_REDIS_URL: world.facade.redis.url,
    POSTHORN_REDIS_KEY_PREFIX: 'test:',
    POSTHORN_RESOURCE_STORE: 'redis',
    POSTHORN_ENCRYPTION_KEYS: `k1:${Buffer.alloc(32, 1).toString('base64')}`,
    POSTHORN_SHARDS: '1',
    POSTHORN_HOST: '127.0.0.1',
    POSTHORN_PORT: String(port),
    POSTHORN_OPS_PORT: String(await freePort()),
    POSTHORN_LOG_LEVEL: 'warn',
  });
  const answerTo = (query: string) =>
    new Promise<IncomingMessage>((resolve, reject) => {
      const headers = { 'x-api-key': world.facade.admin };
      get({ port, path: `/api/outbound-messages/export?limit=50000${query}`, headers }, resolve).on('error', reject);
    });
  try {
    await eventually(async () => expect((await fetch(`http://127.0.0.1:${port}/api/outbound-messages`)).status).toBe(401), 60_000);
    const json = await answerTo('');
    await redisIsQuiet();
    const ids = new Set<string>();
    for await (const line of createInterface({ input: json })) {
      const event = JSON.parse(line.replace(/^\{"data":\[/, '').replace(/(,|\],"pagination":.*)$/, ''));
      if (event.payload.length === payload.length - 2) ids.add(event.id);
    }
    expect(ids.size).toBe(count);
    const csv = (file: string) => answerTo('&format=csv').then((answer) => pipeline(answer, createWriteStream(file)));
    const query = `SELECT count(DISTINCT id)::INT AS ids, min(length(payload))::INT AS shortest FROM ${csvFile}`;
    expect(await readBack(query, csv)).toEqual([{ ids: count, shortest: payload.length }]);
  } finally {
    await api.stop();
  }
}, 600_000);

/** Resolves when no script is run any more. */
async function redisIsQuiet(): Promise<void> {
  const scripts = async () => /cmdstat_evalsha:calls=\d+/.exec(await world.facade.redis.client.info('commandstats'))?.[0];
  await eventually(async () => {
    const before = await scripts();
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(await scripts()).toBe(before);
  });
}
