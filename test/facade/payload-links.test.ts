import { request as httpRequest } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, expect, test } from '@jest/globals';
import { linkedPayload, PayloadLinks, payloadLinkMs } from '../../src/core/payload-link.ts';
import { Keyring } from '../../src/core/sealing.ts';
import { RedisMessagePurger } from '../../src/data/purge/message-purger.ts';
import { payloadPieceMemory, requestMemoryLimits } from '../../src/facade/http/request-memory.ts';
import { systemClock } from '../../src/runtime/system-clock.ts';
import { testKeyring } from '../support/controllers.ts';
import { deliverySuite } from '../support/delivery-suite.ts';
import { eventually } from '../support/eventually.ts';
import { largePayload, mebibyte } from '../support/large-payloads.ts';
import { newEvent } from '../support/new-event.ts';
import { fetchLink, linkIn, type PayloadLinkServer, startPayloadLinks } from '../support/payload-links.ts';
import { destinationRecord, organizationRecord, routeRecord } from '../support/records.ts';

const suite = deliverySuite();
const { prefix, ends, receiver } = suite;
let links: PayloadLinkServer;

beforeEach(async () => {
  links = await serve();
  suite.registry.put('route', routeRecord());
});

async function serve(own: Partial<Parameters<typeof startPayloadLinks>[0]> = {}): Promise<PayloadLinkServer> {
  const server = await startPayloadLinks({ redis: suite.redis.client, prefix, registry: suite.registry, ...own });
  ends.push(() => server.close());
  return server;
}
const tokenOf = (url: string): string => new URL(url).searchParams.get('token') ?? '';
/** On a server of the test, by any maker of the token. */
const at = (token: string, server = links) => `${server.url}/api/payload?token=${encodeURIComponent(token)}`;

/** The link of a delivery. */
async function delivered(changes: Parameters<typeof newEvent>[0] = {}): Promise<string> {
  const to = await receiver();
  suite.registry.put('destination', destinationRecord({ url: to.url, payloadForm: 'thin' }));
  suite.worker({ publicUrl: links.url });
  await suite.acceptor.accept(newEvent(changes));
  const [request] = await to.arrived(1);
  return request === undefined ? '' : linkIn(request);
}

const made = (keyring: Keyring, nowMs = Date.now(), org = 'org_a') =>
  new PayloadLinks(links.url, keyring).make(
    { org, message: { id: 'msg_00', outputOf: null, contentType: null, contentEncoding: null }, payload: null },
    nowMs,
  );
const ring = (...keys: [string, number][]) => new Keyring(keys.map(([id, byte]) => ({ id, key: Buffer.alloc(32, byte) })));

test('a link that is malformed, altered or forged leads to nothing', async () => {
  const token = tokenOf(await delivered());
  const parts = token.split('.');
  const flipped = parts.map((part, place) =>
    parts.map((each, k) => (k === place ? `${part.slice(0, -2)}${part.at(-2) === 'A' ? 'B' : 'A'}${part.at(-1)}` : each)).join('.'),
  );
  const forged = made(ring(['k1', 99])).token;
  const elsewhere = testKeyring.seal('{"o":"org_a","x":99999999999999,"p":"{}"}', {
    organization: '',
    kind: 'MailConfirmation',
    name: 'link',
    field: 'token',
  });
  expect((await fetchLink(at(token))).status).toBe(200);
  const wrong = ['', 'x', 'sealed.v1.', token.slice(0, -4), ...flipped, forged, elsewhere, token.replace('sealed.v1.', '')];
  for (const each of [
    ...wrong.map((text) => at(text)),
    `${links.url}/api/payload`,
    `${links.url}/api/payload?token=${token}&token=x`.replace(token, 'y'),
  ]) {
    const { status, headers, body } = await fetchLink(each);
    expect([status, headers['x-error-code'], JSON.parse(body.toString())]).toEqual([
      404,
      'NOT_FOUND',
      { error: 'Not Found', message: 'There is nothing behind this link.', code: 'NOT_FOUND' },
    ]);
    expect(headers['cache-control']).toBe('no-store');
  }
});

test.each(['script', 'style', 'image', 'iframe', 'serviceworker', 'worker'])('no page can make a payload its %s', async (wanted) => {
  const url = await delivered();
  const answers = await Promise.all([wanted, 'empty', 'document'].map((each) => fetch(url, { headers: { 'sec-fetch-dest': each } })));
  expect(answers.map(({ status }) => status)).toEqual([403, 200, 200]);
  await Promise.all(answers.map((answer) => answer.text()));
});

test('a link counts for 7 days after the attempt, then it answers 410', async () => {
  const url = await delivered();
  const { expiresAtMs = 0 } = linkedPayload(tokenOf(url), testKeyring) ?? {};
  expect(Math.abs(expiresAtMs - Date.now() - payloadLinkMs)).toBeLessThan(60_000);
  const [just, over] = await Promise.all(
    [expiresAtMs - 1, expiresAtMs].map((nowMs) => serve({ clock: { ...systemClock, now: () => nowMs } })),
  );
  expect((await fetchLink(at(tokenOf(url), just))).status).toBe(200);
  const expired = await fetchLink(at(tokenOf(url), over));
  expect([expired.status, JSON.parse(expired.body.toString())]).toMatchObject([410, { code: 'EXPIRED', message: 'The link has expired.' }]);
});

test('a link of an earlier key counts while the keyring has that key', async () => {
  const url = await delivered();
  const both = await serve({ keyring: ring(['k2', 2], ['k1', 1]) });
  const without = await serve({ keyring: ring(['k2', 2]) });
  expect((await fetchLink(at(tokenOf(url), both))).status).toBe(200);
  expect((await fetchLink(at(tokenOf(url), without))).status).toBe(404);
});

test('a link of an organization that is deleted and retained, or gone, leads to nothing', async () => {
  const url = await delivered();
  suite.registry.put('organization', organizationRecord({ retained: { atMs: 1, namespaceUid: null }, generation: 2 }));
  expect((await fetchLink(url)).status).toBe(404);
  suite.registry.put('organization', organizationRecord({ generation: 3 }));
  expect((await fetchLink(url)).status).toBe(200);
  suite.registry.remove('organization', 'org_a');
  expect((await fetchLink(url)).status).toBe(404);
});

test('a link whose organization is another one than that of the message leads to nothing', async () => {
  const { messageId } = { messageId: linkedPayload(tokenOf(await delivered()), testKeyring)?.message?.id ?? '' };
  suite.registry.put('organization', organizationRecord({ id: 'org_b', slug: 'b', namespace: 'b' }));
  const message = { id: messageId, outputOf: null, contentType: null, contentEncoding: null };
  for (const org of ['org_b', '+org_a', '+org_b']) {
    const { url } = new PayloadLinks(links.url, testKeyring).make({ org, message, payload: null }, Date.now());
    expect((await fetchLink(url)).status).toBe(410);
  }
});

test('a link answers 410 when the messages of the organization were purged', async () => {
  const url = await delivered();
  await new RedisMessagePurger({ redis: suite.redis.client, prefix, shards: 1 }).purgeOrganization('org_a', AbortSignal.timeout(60_000));
  const { status, body } = await fetchLink(url);
  expect([status, JSON.parse(body.toString()).message]).toEqual([410, 'The payload is no longer stored.']);
});

test('a link is read by GET and HEAD alone', async () => {
  const url = await delivered();
  const head = await fetch(url, { method: 'HEAD' });
  expect([head.status, head.headers.get('content-length'), await head.text()]).toEqual([200, '7', '']);
  for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) {
    const refused = await fetch(url, { method });
    expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
  }
});

test('a link counts to a limit of its own: fetches do not take the requests of the organization', async () => {
  suite.registry.put('organization', organizationRecord({ plan: 'free', generation: 2 }));
  const url = await delivered();
  const answer = await fetch(url);
  expect([answer.headers.get('x-ratelimit-limit'), answer.headers.get('x-ratelimit-remaining')]).toEqual(['1000', '999']);
  const keys = await suite.redis.client.keys(`${prefix}{rate:*`);
  expect(keys).toEqual([`${prefix}{rate:org_a:fetch}`]);
});

function statusFrom(localAddress: string, url: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest(url, { method: 'HEAD', localAddress, agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    sent.once('error', reject).end();
  });
}

test('clients that do not read get as many payloads as one of them has memory for, as many more wait as it has places, and another one is served', async () => {
  const url = await delivered({ payload: largePayload(12 * mebibyte) });
  const ending = new AbortController();
  // A response that is forgotten is read to its end.
  const open: Response[] = [];
  const askUntilServed = async (): Promise<void> => {
    while (!ending.signal.aborted) {
      const response = await fetch(url, { signal: ending.signal }).catch(() => null);
      if (response?.status === 200) return void open.push(response);
      await response?.body?.cancel();
      await sleep(50);
    }
  };
  for (let i = 0; i < 200; i++) void askUntilServed();
  const fitting = requestMemoryLimits.ofCredential / payloadPieceMemory;
  await eventually(() => expect(open).toHaveLength(fitting));
  // Those without a slot are refused at once, those that wait for memory after ten seconds; they retry.
  await eventually(async () => {
    const refused = await fetch(url, { method: 'HEAD', signal: AbortSignal.timeout(500) }).catch(() => null);
    expect([refused?.status, refused?.headers.get('retry-after')]).toEqual([429, '1']);
  });
  expect(open).toHaveLength(fitting);
  expect(await statusFrom('127.0.0.2', url)).toBe(200);
  ending.abort();
  await eventually(async () => expect((await fetch(url, { method: 'HEAD' })).status).toBe(200));
}, 60_000);
