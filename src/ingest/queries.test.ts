import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { eventually } from '../../test/support/eventually.ts';
import { IngestUnderTest, keyPrefix, signingSecret } from '../../test/support/ingest.ts';
import { lenientClock } from '../../test/support/lenient-clock.ts';
import { maxQueryLength } from '../core/sent-query.ts';
import { RedisMessageReader } from '../data/history/message-reader.ts';
import { RedisMessageAcceptor } from '../data/queue/message-acceptor.ts';

let ingest: IngestUnderTest;
beforeAll(async () => {
  ingest = await IngestUnderTest.start();
});
afterAll(() => ingest.stop());
beforeEach(() => ingest.reset());

const path = '/ingest/acme/github';

describe.each(['POST', 'PUT', 'PATCH', 'GET', 'DELETE'])('the query of a %s', (method) => {
  const body = method === 'GET' || method === 'DELETE' ? '' : '{"a":1}';

  test.each([
    ['?device=7&state=on', 'device=7&state=on'],
    ['?a=%2f+b&a=%C3%BC&bad=100%&&c', 'a=%2f+b&a=%C3%BC&bad=100%&&c'],
    ['?uuid=1&token=CANARY&api_key=CANARY', 'uuid=1'],
    ['/?a=1', 'a=1'],
  ])('%s is kept with the event as it was sent, less credentials', async (query, kept) => {
    await ingest.publishSource({ allowedMethods: [method] });
    expect((await ingest.send(path + query, { method, body })).status).toBe(200);
    expect(ingest.kept.events).toEqual([expect.objectContaining({ method, query: kept, payload: Buffer.from(body) })]);
  });
});

test.each(['', '?', '?token=CANARY'])('an event of a request with the query %j has none', async (query) => {
  await ingest.publishSource();
  expect((await ingest.send(path + query)).status).toBe(200);
  expect(ingest.kept.events[0]).not.toHaveProperty('query');
});

test('a query has at most 8192 characters, and a longer one leaves nothing behind', async () => {
  await ingest.publishSource({ dedup: { strategy: 'idempotency_key', header: null, windowHours: 1 } });
  const longest = `a=${'x'.repeat(maxQueryLength - 2)}`;
  const headers = { 'Idempotency-Key': 'one' };
  expect(await ingest.send(`${path}?${longest}x`, { headers })).toMatchObject({
    status: 414,
    headers: { 'x-error-code': 'URI_TOO_LONG' },
    body: { error: 'URI Too Long', message: 'The query is longer than 8192 characters', code: 'URI_TOO_LONG' },
  });
  expect(ingest.kept.events).toEqual([]);
  expect((await ingest.send(`${path}?${longest}`, { headers })).body.duplicate).toBeUndefined();
  expect(ingest.kept.events[0]?.query).toBe(longest);
});

test('a stored event without a query takes no more memory than before, and one that has no field for it is read', async () => {
  const acceptor = new RedisMessageAcceptor({ redis: ingest.redis.client, prefix: keyPrefix, clock: lenientClock });
  const reader = new RedisMessageReader({ redis: ingest.redis.client, prefix: keyPrefix });
  await ingest.reset({}, acceptor);
  await ingest.publishSource();
  const plain = (await ingest.send(path)).body.eventId ?? '';
  const asked = (await ingest.send(`${path}?a=%2f&a=2`)).body.eventId ?? '';
  expect([(await reader.event('org_a', plain))?.query, (await reader.event('org_a', asked))?.query]).toEqual(['', 'a=%2f&a=2']);
  const texts = await Promise.all(
    (await ingest.redis.client.keys(`${keyPrefix}*`)).map((key) => ingest.redis.client.get(key).catch(() => null)),
  );
  const stored = texts.filter((text) => text?.includes('"g":"github"'));
  expect(stored.map((text) => text?.includes('"q":'))).toHaveLength(2);
  expect(stored.filter((text) => text?.includes('"q":'))).toHaveLength(1);
});

describe('a filter', () => {
  test.each<[string, string, string, unknown, boolean]>([
    ['?device=7&state=on', 'query.device', 'equals', 7, true],
    ['?device=7&state=on', 'query.state', 'equals', 'off', false],
    ['?device=7', 'query.Device', 'exists', undefined, false],
    ['?q=a%20b', 'query.q', 'equals', 'a b', true],
    ['?tag=a&tag=b', 'query.tag', 'contains', 'b', true],
    ['?tag=a&tag=b', 'query.tag', 'equals', ['a', 'b'], true],
    ['?user.id=5', "query['user.id']", 'gt', 4, true],
    ['?ids[]=5', "query['ids[]']", 'equals', '5', true],
    ['?bad=100%', 'query.bad', 'equals', '100%', true],
    ['?flag', 'query.flag', 'exists', undefined, true],
    ['', 'query.flag', 'not_exists', undefined, true],
    // Credentials are compared, but not stored: as those in headers.
    [`?token=${encodeURIComponent(signingSecret)}`, 'query.token', 'equals', signingSecret, true],
    ['', 'query.text', 'equals', 'of the payload', true],
    ['?text=of+the+query', 'query.text', 'equals', 'of the query', true],
    ['?text=of+the+query', 'payload.query.text', 'equals', 'of the payload', true],
  ])('%s: %s %s %j is %s', async (query, field, operator, value, isMet) => {
    await ingest.publishSource();
    const condition = { field, operator: operator as 'equals', ...(value !== undefined && { value }) };
    await ingest.publishRoute({ filter: { logic: 'AND', conditions: [condition] } });
    await ingest.send(path + query, { body: '{"query":{"text":"of the payload"}}' });
    expect(ingest.kept.events[0]?.targets).toHaveLength(isMet ? 1 : 0);
  });
});

describe('payload_hash', () => {
  beforeEach(() => ingest.reset({}, new RedisMessageAcceptor({ redis: ingest.redis.client, prefix: keyPrefix, clock: lenientClock })));

  test.each([
    ['GET', ''],
    ['DELETE', ''],
    ['POST', '{}'],
  ])('of %s counts the query as well as the body', async (method, body) => {
    await ingest.publishSource({ allowedMethods: [method], dedup: { strategy: 'payload_hash', header: null, windowHours: 1 } });
    const send = (query: string) => ingest.send(path + query, { method, body });
    const ids: (string | undefined)[] = [];
    for (const query of ['', '?device=7', '?device=8', '?device=7&device=8', '?token=a', '?token=b']) {
      const answer = await send(query);
      expect(answer.body).toEqual({ success: true, eventId: expect.any(String) });
      ids.push(answer.body.eventId);
    }
    expect(new Set(ids).size).toBe(6);
    const again = await eventually('a duplicate', 30_000, async () => {
      const answer = await send('?device=7');
      return answer.body.duplicate === true ? answer : undefined;
    });
    expect(again.body.eventId).toBe(ids[1]);
  });
});
