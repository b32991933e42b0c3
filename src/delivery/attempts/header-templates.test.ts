import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { testKeyring } from '../../../test/support/controllers.ts';
import { deliverySuite } from '../../../test/support/delivery-suite.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { largePayload } from '../../../test/support/large-payloads.ts';
import { MemoryDirectory, webhookApplication, webhookEndpoint } from '../../../test/support/memory-directory.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { publishRecords } from '../../../test/support/published-records.ts';
import type { Receiver } from '../../../test/support/receiver.ts';
import { destinationRecord, routeRecord, transformRecord } from '../../../test/support/records.ts';
import { verifies } from '../../../test/support/webhook-verification.ts';
import type { HeaderTemplate } from '../../core/header-template.ts';
import { newTimedId } from '../../core/ids.ts';
import { webhookSecretSealingContext } from '../../core/sealing-contexts.ts';
import { webhookOrganization } from '../../core/webhook.ts';
import { RedisMessageReplayer } from '../../data/history/message-replayer.ts';
import type { NewEvent } from '../../data/shard/messages.ts';
import { systemClock } from '../../runtime/system-clock.ts';

let replayer: RedisMessageReplayer;
const suite = deliverySuite();
const { prefix, receiver } = suite;
beforeAll(() => {
  replayer = new RedisMessageReplayer({ redis: suite.redis.client, prefix, clock: systemClock });
});

const templates = (byName: Record<string, string>): HeaderTemplate[] =>
  Object.entries(byName).map(([name, template]) => ({ name, template }));

/** The headers of each request that begin with `x-t-`. */
async function made(to: Receiver, count = 1): Promise<Record<string, unknown>[]> {
  const requests = await to.arrived(count);
  return requests.map(({ headers }) => Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith('x-t-'))));
}

const transform = transformRecord('{"out": payload.in & "!"}');

/** Attacks of a sender. */
const attacks = {
  crlf: 'a\r\nX-T-Evil: 1\r\n\r\nGET / HTTP/1.1',
  lf: 'a\nX-T-Evil: 1',
  nul: 'a\0b',
  unicode: '€\u2028𝄞',
  lone: '\ud800',
  huge: 'x'.repeat(5000),
  number: 0,
  flag: false,
  nothing: null,
  list: [['deep', ['deeper']]],
  object: { a: 1 },
};
/** As JSON, with a number that no double holds, and a member named __proto__. */
const attackText = JSON.stringify(attacks).replace('"number":0', '"number":9007199254740993,"__proto__":{"x":"own"}');
const attackTemplates = templates({
  ...Object.fromEntries(Object.keys(attacks).map((name) => [`X-T-${name}`, `{{ payload.${name} }}`])),
  'X-T-Deeper': '{{ payload.list[0][1][0] }}',
  'X-T-Proto': '{{ payload.__proto__.x }}{{ payload.__proto__.toString }}{{ payload.constructor.name }}',
  'X-T-All': '{{ payload }}',
});
const attacked = {
  'x-t-crlf': 'a%0D%0AX-T-Evil: 1%0D%0A%0D%0AGET / HTTP/1.1',
  'x-t-lf': 'a%0AX-T-Evil: 1',
  'x-t-nul': 'a%00b',
  'x-t-unicode': '%E2%82%AC%E2%80%A8%F0%9D%84%9E',
  'x-t-lone': '%EF%BF%BD',
  'x-t-number': '9007199254740993',
  'x-t-flag': 'false',
  'x-t-deeper': 'deeper',
  'x-t-proto': 'own',
};

describe('a destination', () => {
  beforeEach(() => suite.registry.put('route', routeRecord({})));

  function destination(
    url: string,
    byName: Record<string, string> | HeaderTemplate[],
    http: object = {},
    fields: Parameters<typeof destinationRecord>[1] = {},
  ): void {
    const headerTemplates = Array.isArray(byName) ? byName : templates(byName);
    suite.registry.put('destination', destinationRecord({ url, headerTemplates, ...http }, fields));
  }
  async function send(changes: Parameters<typeof newEvent>[0] = {}): Promise<{ id: string; event: NewEvent }> {
    const event = newEvent(changes);
    await suite.acceptor.accept(event);
    return { id: event.targets[0]?.messageId ?? '', event };
  }

  test('a destination gets headers made of the event, of the message and of where it goes; the attempt shows them', async () => {
    const to = await receiver((response) => response.writeHead(500).end());
    destination(to.url, {
      'X-T-Ids': '{{ event.id }} {{ message.id }}',
      'X-T-Place': '{{ source }}/{{ route }}/{{ destination }}',
      'X-T-Time': '{{ timestamp }}',
      'X-T-Topic': '{{ headers.X-Shop-Topic }}',
      'X-T-Order': 'order {{ payload.order.lines[0].sku }}',
      'X-T-Absent': '{{ payload.absent }}{{ headers.x-absent }}',
    });
    suite.worker();
    const { id, event } = await send({
      headers: [['x-shop-topic', 'orders/paid']],
      payload: Buffer.from('{"order": {"lines": [{"sku": "A-1"}]}}'),
    });
    const expected = {
      'x-t-ids': `${event.id} ${id}`,
      'x-t-place': `${event.sourceSlug}/${routeRecord({}).slug}/${destinationRecord({ url: to.url }).slug}`,
      'x-t-time': new Date(event.receivedAtMs).toISOString(),
      'x-t-topic': 'orders/paid',
      'x-t-order': 'order A-1',
    };
    expect(await made(to)).toEqual([expected]);
    await eventually(async () => expect(await suite.reader.attempts('org_a', id)).not.toEqual([]));
    const [attempt] = await suite.reader.attempts('org_a', id);
    expect(Object.fromEntries(attempt?.detail?.requestHeaders ?? [])).toMatchObject(expected);
  });

  test('no value of a sender breaks a header, and what has no text is left out', async () => {
    const to = await receiver();
    destination(to.url, attackTemplates);
    suite.worker();
    await send({ payload: Buffer.from(attackText) });
    expect(await made(to)).toEqual([attacked]);
    expect(to.requests[0]?.body.toString()).toBe(attackText);
  });

  test.each<[string, Parameters<typeof newEvent>[0]]>([
    ['text', { payload: Buffer.from('no json {{ event.id }}'), contentType: 'text/plain' }],
    ['bytes', { payload: Buffer.from([0, 255, 13, 10, 123]), contentType: 'application/octet-stream' }],
    ['nothing', { payload: Buffer.alloc(0), contentType: '' }],
    ['JSON above 256 KiB', { payload: Buffer.from(JSON.stringify({ a: 'a', b: 'x'.repeat(262_144) })) }],
    ['a payload above 1 MiB', { payload: largePayload() }],
  ])('a payload of %s has no members, and the other values are sent', async (_, changes) => {
    const to = await receiver();
    destination(to.url, { 'X-T-Member': '{{ payload.a }}', 'X-T-Id': '{{ event.id }}' });
    suite.worker();
    const { event } = await send(changes);
    expect(await made(to)).toEqual([{ 'x-t-id': event.id }]);
  });

  test('a retry has its own number, a replay its own message; with a transform the payload is its output', async () => {
    const to = await receiver((response, number) => response.writeHead(number === 1 ? 500 : 200).end());
    destination(to.url, { 'X-T-A': '{{ attempt }} {{ message.id }} {{ payload.out }}', 'X-T-B': '{{ payload.in }}' });
    suite.registry.put('route', routeRecord({ transformId: 'trf_a' }));
    suite.registry.put('transform', transform);
    suite.worker();
    const { id } = await send({ payload: Buffer.from('{"in": "x"}') });
    await suite.becomes(id, { status: 'delivered', attempts: 2 });
    const again = await replayer.replay('org_a', id);
    expect(await made(to, 3)).toEqual([{ 'x-t-a': `1 ${id} x!` }, { 'x-t-a': `2 ${id} x!` }, { 'x-t-a': `1 ${again} x!` }]);
    expect(to.requests[2]?.headers['webhook-id']).toBe(again);
  });

  test('a failover destination has its own templates, and the number of the attempt continues', async () => {
    const [from, to] = [await receiver((response) => response.writeHead(500).end()), await receiver()];
    destination(from.url, { 'X-T-From': '{{ destination }} {{ attempt }}' });
    destination(to.url, { 'X-T-To': '{{ destination }} {{ attempt }}' }, {}, { id: 'dst_b', slug: 'b' });
    suite.registry.put('route', routeRecord({ failover: { destinations: [{ id: 'dst_b', shard: 0 }], afterAttempts: 1 } }));
    suite.worker();
    await send();
    expect(await made(to)).toEqual([{ 'x-t-to': 'b 2' }]);
    expect(await made(from)).toEqual([{ 'x-t-from': `${destinationRecord({ url: from.url }).slug} 1` }]);
  });

  test('a templated header goes before that of the event, also where it has no value; a static one and those of Posthorn go before it', async () => {
    const to = await receiver();
    destination(
      to.url,
      {
        'X-T-Tenant': '{{ payload.absent }}',
        'X-T-Topic': '{{ payload.topic }}',
        'X-T-Static': 'of the template',
        'Webhook-Id': 'of the template',
        'X-Posthorn-Attempt': 'of the template',
        Host: 'of the template',
        'Content-Type': '{{ payload.absent }}',
        'User-Agent': '{{ payload.topic }}',
      },
      { headers: [{ name: 'x-t-static', value: 'static' }] },
    );
    suite.worker();
    const { id } = await send({
      payload: Buffer.from('{"topic": "paid"}'),
      contentType: 'application/vnd.shop+json',
      headers: [
        ['content-type', 'application/vnd.shop+json'],
        ['x-t-tenant', 'of the sender'],
        ['x-t-topic', 'of the sender'],
      ],
    });
    expect(await made(to)).toEqual([{ 'x-t-topic': 'paid', 'x-t-static': 'static' }]);
    const headers = to.requests[0]?.headers;
    expect(headers).toMatchObject({
      'webhook-id': id,
      'x-posthorn-attempt': '1',
      'content-type': 'application/vnd.shop+json',
      'user-agent': 'paid',
      host: new URL(to.url).host,
    });
  });

  test('a template that changes holds for the next attempt', async () => {
    const to = await receiver((response, number) => {
      if (number === 1) destination(to.url, { 'X-T-A': 'two' }, {}, { generation: 2 });
      response.writeHead(number === 1 ? 500 : 200).end();
    });
    destination(to.url, { 'X-T-A': 'one' });
    suite.worker();
    await send();
    expect(await made(to, 2)).toEqual([{ 'x-t-a': 'one' }, { 'x-t-a': 'two' }]);
  });

  test('a worker that takes over from one that was killed in an attempt makes the same headers of the same message', async () => {
    const to = await receiver((response, number) => {
      if (number > 1) response.end();
    });
    const headerTemplates = templates({ 'X-T-Id': '{{ message.id }}', 'X-T-Order': 'no {{ payload.id }}' });
    const own = destinationRecord({ url: to.url, headerTemplates });
    await publishRecords(suite.redis.client, prefix, { route: routeRecord(), destination: own });
    const first = await suite.program();
    const { id } = await send({ payload: Buffer.from('{"id": 7}') });
    await to.arrived(1, 60_000);
    first.signal('SIGKILL');
    await first.ended;
    await suite.program();
    await to.arrived(2, 60_000);
    expect(await made(to, 2)).toEqual(Array(2).fill({ 'x-t-id': id, 'x-t-order': 'no 7' }));
  }, 180_000);
});

describe('a webhook endpoint', () => {
  const org = webhookOrganization('org_a');
  const secret = `whsec_${Buffer.alloc(32, 1).toString('base64')}`;
  let directory: MemoryDirectory;
  beforeEach(() => {
    directory = new MemoryDirectory();
    directory.putApplication(webhookApplication());
  });

  function endpoint(url: string, headerTemplates: HeaderTemplate[], headers: { name: string; value: string }[] = []): void {
    const sealed = testKeyring.seal(secret, webhookSecretSealingContext('org_a', 'ep_a'));
    const kept = { sealed, prefix: 'whsec_AQEB…', version: 1, previous: [] };
    directory.putEndpoint(webhookEndpoint({ url, secret: kept, headerTemplates, headers }));
  }
  async function send(payload: string, transformId: string | null = null): Promise<NewEvent> {
    const messageId = newTimedId('msg_', 0, Date.now());
    const event = {
      ...newEvent({ payload: Buffer.from(payload), headers: [] }),
      org,
      sourceId: 'etp_a',
      sourceSlug: 'order.paid',
      webhook: { labels: {}, metadata: {}, idempotencyKey: null, applicationId: null, endpointIds: [] },
      targets: [
        { messageId, routeId: 'app_a', destinationId: 'ep_a', shard: 0, maxAttempts: 3, subscription: { id: 'sub_a', transformId } },
      ],
    };
    await suite.acceptor.accept(event);
    return event;
  }
  const worker = () => suite.worker({ webhooks: { ...directory.sources(), retries: { delaysMs: [50, 100] } } });

  test('an endpoint gets headers made of the event, of the message and of where it goes, with the number of each attempt; the signature verifies', async () => {
    const to = await receiver((response, number) => response.writeHead(number === 1 ? 500 : 200).end());
    endpoint(
      to.url,
      templates({
        'X-T-Ids': '{{ event.id }} {{ message.id }} {{ attempt }}',
        'X-T-Place': '{{ event.type }}/{{ application }}/{{ endpoint }}',
        'X-T-Time': '{{ timestamp }}',
        'X-T-Order': '{{ payload.order.id }}',
        'X-T-Absent': '{{ payload.absent }}',
        'X-T-Static': 'of the template',
        'Webhook-Signature': 'of the template',
        'Content-Type': 'of the template',
        'User-Agent': 'of the template',
      }),
      [{ name: 'X-T-Static', value: 'static' }],
    );
    worker();
    const event = await send('{"order": {"id": "o-1"}}');
    const message = event.targets[0]?.messageId;
    const common = {
      'x-t-place': 'order.paid/app_a/ep_a',
      'x-t-time': new Date(event.receivedAtMs).toISOString(),
      'x-t-order': 'o-1',
      'x-t-static': 'static',
    };
    expect(await made(to, 2)).toEqual([
      { ...common, 'x-t-ids': `${event.id} ${message} 1` },
      { ...common, 'x-t-ids': `${event.id} ${message} 2` },
    ]);
    const [request] = to.requests;
    expect(request?.headers['content-type']).toBe('application/json');
    expect(request?.headers['user-agent']).not.toBe('of the template');
    expect(request !== undefined && verifies(request, secret)).toBe(true);
  });

  test('no value of a payload breaks a header, and what has no text is left out', async () => {
    const to = await receiver();
    endpoint(to.url, attackTemplates);
    worker();
    await send(attackText);
    expect(await made(to)).toEqual([attacked]);
  });

  test('with a transform of the subscription the payload is its output', async () => {
    const to = await receiver();
    endpoint(to.url, templates({ 'X-T-Out': '{{ payload.out }}', 'X-T-In': '{{ payload.in }}' }));
    suite.registry.put('transform', transform);
    worker();
    await send('{"in": "x"}', 'trf_a');
    expect(await made(to)).toEqual([{ 'x-t-out': 'x!' }]);
  });
});
