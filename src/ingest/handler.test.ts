import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { OutgoingHttpHeaders } from 'node:http';
import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { eventually } from '../../test/support/eventually.ts';
import { IngestUnderTest, signingSecret } from '../../test/support/ingest.ts';
import { destinationRecord } from '../../test/support/records.ts';
import { parseTimedId } from '../core/ids.ts';
import type { RouteRecord } from '../core/records.ts';
import { recordSealingContext } from '../core/sealing-contexts.ts';

const require = createRequire(import.meta.url);
const retryPolicy = { maxRetries: 10, initialDelayMs: 1000, maxDelayMs: 3_600_000, backoffMultiplier: 4 };

let ingest: IngestUnderTest;
beforeAll(async () => {
  ingest = await IngestUnderTest.start();
});
afterAll(() => ingest.stop());
beforeEach(() => ingest.reset());

describe('an accepted request', () => {
  test('an accepted request is answered with the id under which the event was stored, and stored byte for byte', async () => {
    await ingest.publishSource();
    await ingest.publishRoute({ destinations: [{ id: 'dst_a', shard: 3 }] });
    await ingest.publisher.publish(
      ingest.epoch,
      'destination',
      destinationRecord({ url: 'https://example.com/' }, { retryPolicy: { ...retryPolicy, maxRetries: 4 } }),
    );
    const body = Buffer.from('{"a" : 1,\n"b":"\u00fc \\u0041"}\r\n');
    const answer = await ingest.send('/ingest/acme/github', {
      headers: { 'Content-Type': 'application/json', 'X-GitHub-Event': 'push', Cookie: 'c', Authorization: 'a' },
      body,
    });
    expect(answer.status).toBe(200);
    expect(answer.headers).toMatchObject({ 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' });
    const [event] = ingest.kept.events;
    expect(answer.body).toEqual({ success: true, eventId: event?.id });
    expect(event?.payload.equals(body)).toBe(true);
    expect(event).toMatchObject({
      org: 'org_a',
      sourceId: 'src_a',
      sourceSlug: 'github',
      method: 'POST',
      contentType: 'application/json',
      signatureValid: null,
      filtered: [],
    });
    expect(event?.headers).toEqual([
      ['content-type', 'application/json'],
      ['x-github-event', 'push'],
    ]);
    expect(event?.targets).toEqual([{ messageId: expect.any(String), routeId: 'rte_a', destinationId: 'dst_a', shard: 3, maxAttempts: 5 }]);
    expect(parseTimedId(event?.id ?? '')?.shard).toBe(3);
    expect(parseTimedId(event?.targets[0]?.messageId ?? '')?.shard).toBe(3);
  });

  test.each(['/ingest/acme/github', 'http://in.example/ingest/acme/github', 'HTTPS://in.example:8443/ingest/acme/github?a=b'])(
    'is taken at %s',
    async (target) => {
      await ingest.publishSource();
      expect(await ingest.send(target)).toMatchObject({ status: 200, body: { eventId: ingest.kept.events[0]?.id } });
    },
  );

  test('an accepted request is not answered before it is stored', async () => {
    await ingest.publishSource();
    const gate = Promise.withResolvers<void>();
    ingest.kept.hold = () => gate.promise;
    let isAnswered = false;
    const answer = ingest.send('/ingest/acme/github').finally(() => {
      isAnswered = true;
    });
    await sleep(100);
    expect(isAnswered).toBe(false);
    gate.resolve();
    expect((await answer).status).toBe(200);
  });

  test.each(['/ingest/acme/github/', '/ingest/acme/github?x=1', '/ingest/acme/github/?x=/../'])(
    'an accepted request may come to %s',
    async (path) => {
      await ingest.publishSource();
      expect((await ingest.send(path)).status).toBe(200);
    },
  );

  test.each([
    ['text/plain', Buffer.from('hello')],
    ['application/x-www-form-urlencoded', Buffer.from('payload=%7B%7D')],
    ['application/octet-stream', Buffer.from([0, 255, 254, 13, 10, 0, 128])],
    ['application/json', Buffer.from('{"broken')],
    ['application/json; charset=utf-16', Buffer.from('{}', 'utf16le')],
    ['application/json', Buffer.alloc(0)],
  ])('an accepted request may be %s, whatever the bytes', async (contentType, body) => {
    await ingest.publishSource();
    await ingest.publishRoute();
    expect((await ingest.send('/ingest/acme/github', { headers: { 'Content-Type': contentType }, body })).status).toBe(200);
    expect(ingest.kept.events[0]?.payload.equals(body)).toBe(true);
    expect(ingest.kept.events[0]?.contentType).toBe(contentType);
  });

  test('an accepted request may be chunked, without a length', async () => {
    await ingest.publishSource();
    const head = 'POST /ingest/acme/github HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n';
    const answer = await ingest.sendRaw([head, '3\r\nabc\r\n', '4\r\ndefg\r\n', '0\r\n\r\n']);
    expect(answer).toMatch(/^HTTP\/1.1 200 /);
    expect(ingest.kept.events[0]?.payload.toString()).toBe('abcdefg');
    expect(ingest.kept.events[0]?.headers).toEqual([]);
  });

  test('an accepted request has no target when the source has no route', async () => {
    await ingest.publishSource();
    expect((await ingest.send('/ingest/acme/github')).status).toBe(200);
    expect(ingest.kept.events[0]).toMatchObject({ targets: [], filtered: [] });
    expect(parseTimedId(ingest.kept.events[0]?.id ?? '')?.shard).toBe(0);
  });

  test('an accepted request echoes a harmless X-Request-Id, and gets one when it has none', async () => {
    await ingest.publishSource();
    expect((await ingest.send('/ingest/acme/github', { headers: { 'X-Request-Id': 'abc-1' } })).headers['x-request-id']).toBe('abc-1');
    expect((await ingest.send('/ingest/acme/github', { headers: { 'X-Request-Id': '<script>' } })).headers['x-request-id']).toMatch(
      /^req_[a-z2-7]{16}$/,
    );
  });

  test('an accepted request is counted, with its bytes and its time', async () => {
    await ingest.publishSource();
    await ingest.send('/ingest/acme/github', { body: 'x'.repeat(100) });
    const text = await ingest.metrics.metrics();
    expect(text).toContain('posthorn_ingest_requests_total{outcome="accepted"} 1');
    expect(text).toContain('posthorn_ingest_payload_bytes_total 100');
    expect(text).toContain('posthorn_ingest_duration_seconds_count 1');
  });
});

describe('routes', () => {
  test('come by priority, higher first; the filtered ones are named, the disabled ones are targets', async () => {
    await ingest.publishSource();
    await ingest.publisher.publish(
      ingest.epoch,
      'destination',
      destinationRecord({ url: 'https://example.com/' }, { retryPolicy: { ...retryPolicy, maxRetries: 0 } }),
    );
    await ingest.publishRoute({ id: 'rte_low', slug: 'low', priority: -1 });
    await ingest.publishRoute({ id: 'rte_high', slug: 'high', priority: 5, enabled: false });
    const filter: RouteRecord['filter'] = { logic: 'AND', conditions: [{ field: 'payload.ref', operator: 'equals', value: 'main' }] };
    await ingest.publishRoute({ id: 'rte_filtered', slug: 'filtered', filter });
    await ingest.send('/ingest/acme/github', { body: '{"ref":"dev"}' });
    await ingest.send('/ingest/acme/github', { body: '{"ref":"main"}' });
    const [dev, main] = ingest.kept.events;
    expect(dev?.targets.map(({ routeId }) => routeId)).toEqual(['rte_high', 'rte_low']);
    expect(dev?.filtered).toEqual([{ routeId: 'rte_filtered', why: { condition: 0, reason: 'condition', rule: expect.any(String) } }]);
    expect(main?.targets.map(({ routeId }) => routeId)).toEqual(['rte_high', 'rte_filtered', 'rte_low']);
    expect(main?.filtered).toEqual([]);
  });

  test('a filter on a header sees the header, and one on the payload sees none when the body is not JSON', async () => {
    await ingest.publishSource();
    await ingest.publishRoute({
      filter: { logic: 'AND', conditions: [{ field: 'headers.X-GitHub-Event', operator: 'equals', value: 'push' }] },
    });
    await ingest.publishRoute({ id: 'rte_b', slug: 'b', filter: { logic: 'AND', conditions: [{ field: 'payload', operator: 'exists' }] } });
    await ingest.send('/ingest/acme/github', { headers: { 'x-github-event': 'push' }, body: 'no json' });
    expect(ingest.kept.events[0]?.targets.map(({ routeId }) => routeId)).toEqual(['rte_a']);
    expect(ingest.kept.events[0]?.filtered.map(({ routeId }) => routeId)).toEqual(['rte_b']);
  });

  test('a changed route, and a new one, are in force as soon as the change is known here', async () => {
    await ingest.publishSource();
    await ingest.publishRoute();
    await ingest.send('/ingest/acme/github');
    const changed = new Set<string>();
    ingest.registry.onChange((changeKey) => changed.add(changeKey));
    await ingest.publishRoute({ destinations: [{ id: 'dst_b', shard: 0 }], generation: 2 });
    await ingest.publishRoute({ id: 'rte_b', slug: 'b' });
    await eventually('the change', 30_000, async () => changed.has('route:rte_b'));
    await ingest.send('/ingest/acme/github');
    expect(ingest.kept.events[1]?.targets.map(({ destinationId }) => destinationId)).toEqual(['dst_b', 'dst_a']);
  });

  test('a retracted source is 404 as soon as the change is known here', async () => {
    await ingest.publishSource();
    expect((await ingest.send('/ingest/acme/github')).status).toBe(200);
    await ingest.publisher.retract(ingest.epoch, 'source', 'src_a');
    await eventually('a 404', 30_000, async () => (await ingest.send('/ingest/acme/github')).status === 404);
  });
});

describe('signatures', () => {
  const sign = (body: string | Buffer): OutgoingHttpHeaders => ({
    'X-Hub-Signature-256': `sha256=${createHmac('sha256', signingSecret).update(body).digest('hex')}`,
  });

  test('a right one is accepted and recorded', async () => {
    await ingest.publishSignedSource();
    expect((await ingest.send('/ingest/acme/github', { headers: sign('{}') })).status).toBe(200);
    expect(ingest.kept.events[0]?.signatureValid).toBe(true);
  });

  test('a wrong or missing one is 401, and nothing is stored', async () => {
    await ingest.publishSignedSource();
    const answers = [await ingest.send('/ingest/acme/github', { headers: sign('{} ') }), await ingest.send('/ingest/acme/github')];
    for (const { status, headers, body } of answers) {
      expect([status, headers['x-error-code'], body]).toEqual([
        401,
        'INVALID_SIGNATURE',
        { error: 'Unauthorized', message: expect.any(String), code: 'INVALID_SIGNATURE' },
      ]);
    }
    expect(ingest.kept.events).toEqual([]);
  });

  test('a wrong one is accepted and recorded where the source allows it', async () => {
    await ingest.publishSignedSource({ rejectInvalidSignatures: false });
    expect((await ingest.send('/ingest/acme/github')).status).toBe(200);
    expect(ingest.kept.events[0]?.signatureValid).toBe(false);
  });

  test('a secret that does not open is 500 without a word about it', async () => {
    const context = recordSealingContext('org_other', 'source', 'src_a', 'signingSecrets');
    await ingest.publishSignedSource({ signingSecrets: [ingest.keyring.seal(signingSecret, context)] });
    const { status, body } = await ingest.send('/ingest/acme/github', { headers: sign('{}') });
    expect([status, body.code, body.message]).toEqual([500, 'INTERNAL', 'The event could not be taken']);
  });

  test('real GitHub payloads arrive byte for byte', async () => {
    await ingest.publishSignedSource();
    const file = require.resolve('@octokit/webhooks-examples/api.github.com/index.json');
    const events = JSON.parse(readFileSync(file, 'utf8')) as { name: string; examples: unknown[] }[];
    const bodies = events.map(({ examples }) => JSON.stringify(examples[0]));
    for (const body of bodies) expect((await ingest.send('/ingest/acme/github', { headers: sign(body), body })).status).toBe(200);
    expect(ingest.kept.events.map(({ payload }) => payload.toString())).toEqual(bodies);
  });
});
