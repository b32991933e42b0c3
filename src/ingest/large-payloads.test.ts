import { createHmac } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { type Answer, IngestUnderTest, signingSecret } from '../../test/support/ingest.ts';
import { largeJson, largePayload, mebibyte } from '../../test/support/large-payloads.ts';
import { expectShortTurns } from '../../test/support/short-work.ts';
import { recordLayoutVersion } from '../core/records.ts';

const path = '/ingest/acme/github';
const maxPayloadBytes = 32 * mebibyte;

let ingest: IngestUnderTest;
beforeAll(async () => {
  ingest = await IngestUnderTest.start();
});
afterAll(() => ingest.stop());
beforeEach(() => ingest.reset({}, undefined, { maxPayloadBytes }));

const large = { payloadLimitBytes: mebibyte, largePayloadLimitBytes: 25 * mebibyte };
const json = { 'content-type': 'application/json' };

describe('the limit of payloads', () => {
  const levels: [string, { source: object; installation: number; limit: number }][] = [
    ['an organization', { source: { ...large, largePayloadLimitBytes: 2 * mebibyte }, installation: 8 * mebibyte, limit: 2 * mebibyte }],
    ['the installation', { source: large, installation: 3 * mebibyte, limit: 3 * mebibyte }],
    ['a plan, where it is below 1 MiB', { source: { payloadLimitBytes: 65_536 }, installation: 8 * mebibyte, limit: 65_536 }],
    ['the default', { source: large, installation: mebibyte, limit: mebibyte }],
  ];
  describe.each(levels)('of %s', (_what, { source, installation, limit }) => {
    beforeEach(async () => {
      await ingest.reset({}, undefined, { maxPayloadBytes: installation });
      await ingest.publishSource(source);
    });

    test.each(['Content-Length', 'Transfer-Encoding: chunked'])('holds with %s', async (how) => {
      const headers = how === 'Content-Length' ? json : { ...json, 'transfer-encoding': 'chunked' };
      expect((await ingest.send(path, { headers, body: largePayload(limit) })).status).toBe(200);
      const { status, body } = await ingest.send(path, { headers, body: largePayload(limit + 1) });
      expect([status, body.code, body.message]).toEqual([413, 'PAYLOAD_TOO_LARGE', `The body is larger than ${limit} bytes`]);
      expect(ingest.kept.events.map(({ payload }) => payload.length)).toEqual([limit]);
    });
  });

  test('the limit of payloads is checked by what Content-Length says before the body comes', async () => {
    await ingest.publishSource(large);
    const answer = await ingest.sendRaw([`POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: ${25 * mebibyte + 1}\r\n\r\n`], Boolean);
    expect(answer).toMatch(/^HTTP\/1.1 413 /);
  });
});

describe('an event with a payload of 25 MiB', () => {
  const body = largeJson(25 * mebibyte - 1000, { action: 'opened', id: 'evt-17', amount: 7, text: 'a'.repeat(100) });

  test('an event with a payload of 25 MiB is taken with its bytes as they came', async () => {
    await ingest.publishSource(large);
    await ingest.publishRoute();
    const payload = largePayload(25 * mebibyte);
    expect((await ingest.send(path, { body: payload })).status).toBe(200);
    const [event] = ingest.kept.events;
    expect(event?.payload.equals(payload)).toBe(true);
    expect(event?.targets).toHaveLength(1);
  });

  test.each(['whole', 'in chunks'])(
    'an event with a payload of 25 MiB that comes %s is in memory once, and the next one has the same memory',
    async (how) => {
      const memories: unknown[] = [];
      await ingest.reset({}, { accept: async ({ payload }) => memories.push(payload.buffer) > 0 }, { maxPayloadBytes });
      await ingest.publishSource(large);
      const before = process.memoryUsage().arrayBuffers;
      const headers = how === 'in chunks' ? { ...json, 'transfer-encoding': 'chunked' } : json;
      for (let i = 0; i < 2; i++) expect((await ingest.send(path, { headers, body })).status).toBe(200);
      expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(32 * mebibyte);
      expect(memories[1]).toBe(memories[0]);
    },
  );

  test.each(['whole', 'in chunks'])('an event with a payload of 25 MiB has its signature checked when it comes %s', async (how) => {
    await ingest.publishSignedSource(large);
    const signature = `sha256=${createHmac('sha256', signingSecret).update(body).digest('hex')}`;
    const headers = { ...json, 'x-hub-signature-256': signature, ...(how === 'in chunks' && { 'transfer-encoding': 'chunked' }) };
    expect((await ingest.send(path, { headers, body })).status).toBe(200);
    const other = Buffer.from(body);
    other[other.length - 5] = 0x41;
    expect((await ingest.send(path, { headers, body: other })).body.code).toBe('INVALID_SIGNATURE');
  });

  const filters: [string, { field: string; operator: 'equals' | 'gt' | 'matches' | 'exists'; value?: unknown }, boolean][] = [
    ['an equal text', { field: 'action', operator: 'equals', value: 'opened' }, true],
    ['another text', { field: 'action', operator: 'equals', value: 'closed' }, false],
    ['a number', { field: 'amount', operator: 'gt', value: 6 }, true],
    ['a pattern', { field: 'text', operator: 'matches', value: '^a{100}$' }, true],
    ['a field at the end of the text', { field: 'items[90000].nested.deep[2]', operator: 'exists' }, true],
    ['a header', { field: 'headers.x-kind', operator: 'equals', value: 'large' }, true],
  ];
  test.each(filters)(
    'an event with a payload of 25 MiB meets the filter of a route by %s as a small one does',
    async (_what, condition, isMet) => {
      await ingest.publishSource(large);
      await ingest.publishRoute({ filter: { logic: 'AND', conditions: [condition] } });
      await ingest.publishRoute({ id: 'rte_b', slug: 'b' });
      expect((await ingest.send(path, { headers: { ...json, 'x-kind': 'large' }, body })).status).toBe(200);
      const [event] = ingest.kept.events;
      expect(event?.targets.map(({ routeId }) => routeId)).toEqual(isMet ? ['rte_a', 'rte_b'] : ['rte_b']);
      expect(event?.filtered).toMatchObject(isMet ? [] : [{ routeId: 'rte_a' }]);
    },
  );

  test('an event with a payload of 25 MiB says which filter could not be tried, because its pattern would take too long', async () => {
    await ingest.publishSource(large);
    await ingest.publishRoute({ filter: { logic: 'AND', conditions: [{ field: 'a', operator: 'matches', value: '[ab]{200}c' }] } });
    const long = JSON.stringify({ a: 'ab'.repeat(4 * mebibyte) });
    expect((await ingest.send(path, { headers: json, body: long })).status).toBe(200);
    expect(ingest.kept.events[0]?.filtered).toMatchObject([{ routeId: 'rte_a', untried: expect.stringContaining('not tried') }]);
  });

  test('an event with a payload of 25 MiB breaks the schema of a route as a small one does', async () => {
    const schema = (id: string, required: string) =>
      ingest.publishSchema({
        v: recordLayoutVersion,
        id,
        org: 'org_a',
        version: 1,
        generation: 1,
        jsonSchema: JSON.stringify({ required: [required] }),
      });
    await ingest.publishSource(large);
    await schema('sch_a', 'action');
    await schema('sch_b', 'nothing');
    await ingest.publishRoute({ schemaId: 'sch_a' });
    await ingest.publishRoute({ id: 'rte_b', slug: 'b', schemaId: 'sch_b' });
    expect((await ingest.send(path, { headers: json, body })).status).toBe(200);
    const [event] = ingest.kept.events;
    expect(event?.targets.map(({ routeId }) => routeId)).toEqual(['rte_a']);
    expect(event?.invalid).toMatchObject([{ routeId: 'rte_b', brokenSchema: expect.stringContaining('nothing') }]);
  });

  test.each([
    ['by an id in the payload', { provider: 'intercom' as const }, {}],
    ['by a header', {}, { 'x-github-delivery': 'd-1' }],
    ['by the hash of the payload', { dedup: { strategy: 'payload_hash' as const, header: null, windowHours: 1 } }, {}],
  ])('an event with a payload of 25 MiB is known %s when it comes again', async (_how, source, headers) => {
    await ingest.publishSource({ ...large, ...source });
    const first = await ingest.send(path, { headers: { ...json, ...headers }, body });
    const again = await ingest.send(path, { headers: { ...json, ...headers }, body });
    expect(again.body).toMatchObject({ duplicate: true, eventId: first.body.eventId });
    expect(ingest.kept.events).toHaveLength(1);
  });

  test('an event with a payload of 25 MiB makes no long turn of the event loop, whatever reads it', async () => {
    await ingest.publishSignedSource(large);
    await ingest.publishRoute({ filter: { logic: 'AND', conditions: [{ field: 'action', operator: 'equals', value: 'opened' }] } });
    const signature = `sha256=${createHmac('sha256', signingSecret).update(body).digest('hex')}`;
    const send = (): Promise<number> =>
      new Promise((resolve, reject) => {
        // The sender is in this process, too: it writes in pieces.
        const request = httpRequest(ingest.url(path), {
          method: 'POST',
          headers: { ...json, 'x-hub-signature-256': signature, 'content-length': body.length },
        });
        request.on('response', (response) => response.resume().on('end', () => resolve(response.statusCode ?? 0)));
        request.on('error', reject);
        let at = 0;
        const write = (): void => {
          if (at >= body.length) return void request.end();
          request.write(body.subarray(at, at + mebibyte), () => setImmediate(write));
          at += mebibyte;
        };
        write();
      });
    const statuses = new Set<number>();
    await expectShortTurns(50, async () => void statuses.add(await send()));
    expect(statuses).toEqual(new Set([200]));
  });

  describe.each(['Content-Length', 'Transfer-Encoding: chunked'])('with %s', (how) => {
    const headers = how === 'Content-Length' ? json : { ...json, 'transfer-encoding': 'chunked' };

    /** While one is stored, which `release` lets end. */
    async function besideFirst(roomDeadlineMs: number): Promise<{ first: Promise<Answer>; release: () => void }> {
      const limits = { largeMebibytes: 75, largeMebibytesOfOrganization: 34, roomDeadlineMs };
      await ingest.reset(limits, undefined, { maxPayloadBytes: 25 * mebibyte });
      await ingest.publishSource(large);
      await ingest.publishSource({ id: 'src_b', slug: 'b', org: 'org_b', ...large });
      let release = (): void => {};
      const held = new Promise<void>((resolve) => {
        release = resolve;
      });
      const begun = new Promise<void>((resolve) => {
        ingest.kept.hold = () => {
          ingest.kept.hold = async () => {};
          resolve();
          return held;
        };
      });
      const first = ingest.send(path, { headers, body });
      await begun;
      return { first, release };
    }

    test('waits until its organization has memory, and others do not wait for it', async () => {
      const { first, release } = await besideFirst(60_000);
      const statuses: string[] = [];
      const second = ingest.send(path, { headers, body }).then(({ status }) => statuses.push(`second ${status}`));
      statuses.push(`other ${(await ingest.send('/ingest/acme/b', { headers, body })).status}`);
      release();
      expect((await first).status).toBe(200);
      await second;
      expect(statuses).toEqual(['other 200', 'second 200']);
    });

    test('is refused when there is no memory in time, while small ones are accepted', async () => {
      const { first, release } = await besideFirst(200);
      const refused = await ingest.send(path, { headers, body });
      expect([refused.status, refused.body.code, refused.headers['retry-after']]).toEqual([503, 'UNAVAILABLE', '1']);
      expect((await ingest.send(path, { headers: json, body: '{}' })).status).toBe(200);
      release();
      expect((await first).status).toBe(200);
    });
  });
});
