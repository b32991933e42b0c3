import { createHash, createHmac } from 'node:crypto';
import type { OutgoingHttpHeaders } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { eventually } from '../../test/support/eventually.ts';
import { type Answer, IngestUnderTest, keyPrefix } from '../../test/support/ingest.ts';
import { lenientClock } from '../../test/support/lenient-clock.ts';
import { type Provider, providerNames } from '../core/providers/providers.ts';
import type { SourceRecord } from '../core/records.ts';
import { recordSealingContext } from '../core/sealing-contexts.ts';
import { RedisMessageAcceptor } from '../data/queue/message-acceptor.ts';

let ingest: IngestUnderTest;
beforeAll(async () => {
  ingest = await IngestUnderTest.start();
});
afterAll(() => ingest.stop());
const publicUrl = 'https://hooks.example.com';
beforeEach(() =>
  ingest.reset({}, new RedisMessageAcceptor({ redis: ingest.redis.client, prefix: keyPrefix, clock: lenientClock }), { publicUrl }),
);

const path = '/ingest/acme/github';
const secret = 'a secret to everybody';
const standardSecret = `whsec_${Buffer.from(secret).toString('base64')}`;
const dedup = (strategy: NonNullable<SourceRecord['dedup']>['strategy'], header: string | null = null): SourceRecord['dedup'] => ({
  strategy,
  header,
  windowHours: 24,
});

interface Request {
  headers: OutgoingHttpHeaders;
  body: string;
  path?: string;
}

const seconds = (): string => String(Math.floor(Date.now() / 1000));
const hmac = (algorithm: string, text: string, encoding: 'hex' | 'base64'): string =>
  createHmac(algorithm, secret).update(text).digest(encoding);

function standardHeaders(name: string, id: string, body: string): OutgoingHttpHeaders {
  const at = seconds();
  return { [`${name}-id`]: id, [`${name}-timestamp`]: at, [`${name}-signature`]: `v1,${hmac('sha256', `${id}.${at}.${body}`, 'base64')}` };
}

/** Sorted, as Twilio signs. */
function twilioSignature(fields: [name: string, value: string][]): string {
  return hmac('sha1', publicUrl + path + fields.map((field) => field.join('')).join(''), 'base64');
}

const form = 'application/x-www-form-urlencoded';
const twilioForm = (fields: [string, string][]): Request => ({
  headers: { 'content-type': form, 'x-twilio-signature': twilioSignature(fields) },
  body: new URLSearchParams(fields).toString(),
});

/** Signed content of a provider, and the headers beside it, without those in which it puts an id that is not signed. */
const signers: Record<Provider, (body: string) => Request> = {
  generic: (body) => ({ headers: { 'x-webhook-signature': hmac('sha256', body, 'hex') }, body }),
  custom: (body) => ({ headers: { 'x-signed': hmac('sha512', body, 'hex') }, body }),
  github: (body) => ({ headers: { 'x-hub-signature-256': `sha256=${hmac('sha256', body, 'hex')}` }, body }),
  gitlab: (body) => ({ headers: standardHeaders('webhook', 'msg_1', body), body }),
  stripe: (body) => {
    const at = seconds();
    return { headers: { 'stripe-signature': `t=${at},v1=${hmac('sha256', `${at}.${body}`, 'hex')}` }, body };
  },
  shopify: (body) => ({ headers: { 'x-shopify-hmac-sha256': hmac('sha256', body, 'base64'), 'x-shopify-topic': 'orders/paid' }, body }),
  slack: (body) => {
    const at = seconds();
    return { headers: { 'x-slack-signature': `v0=${hmac('sha256', `v0:${at}:${body}`, 'hex')}`, 'x-slack-request-timestamp': at }, body };
  },
  twilio: (body) => twilioForm([...new URLSearchParams(body)]),
  paddle: (body) => {
    const at = seconds();
    return { headers: { 'paddle-signature': `ts=${at};h1=${hmac('sha256', `${at}:${body}`, 'hex')}` }, body };
  },
  'standard-webhooks': (body) => ({ headers: standardHeaders('webhook', 'msg_1', body), body }),
  svix: (body) => ({ headers: standardHeaders('svix', 'msg_1', body), body }),
  intercom: (body) => ({ headers: { 'x-hub-signature': `sha1=${hmac('sha1', body, 'hex')}` }, body }),
  sentry: (body) => ({ headers: { 'sentry-hook-signature': hmac('sha256', body, 'hex'), 'sentry-hook-resource': 'error' }, body }),
  bitbucket: (body) => ({
    headers: { 'x-hub-signature': `sha256=${hmac('sha256', body, 'hex')}`, 'x-event-key': 'pullrequest:updated' },
    body,
  }),
  posthorn: (body) => ({ headers: {}, body }),
};

async function publish(provider: Provider, fields: Partial<SourceRecord> = {}): Promise<void> {
  const isStandard = provider === 'gitlab' || provider === 'standard-webhooks' || provider === 'svix';
  const context = recordSealingContext('org_a', 'source', 'src_a', 'signingSecrets');
  await ingest.publishSource({
    provider,
    signingSecrets: [ingest.keyring.seal(isStandard ? standardSecret : secret, context)],
    rejectInvalidSignatures: true,
    ...(provider === 'custom' && { verification: { algorithm: 'sha512', header: 'x-signed', encoding: 'hex', prefix: '' } }),
    ...fields,
  });
}

async function send(request: Request, more: OutgoingHttpHeaders = {}): Promise<'new' | 'duplicate'> {
  const answer: Answer = await ingest.send(request.path ?? path, { headers: { ...request.headers, ...more }, body: request.body });
  expect([answer.status, answer.body]).toEqual([200, expect.objectContaining({ success: true })]);
  return answer.body.duplicate === true ? 'duplicate' : 'new';
}

/** Sent once, and again until the first is recorded as stored, after its response. */
async function recorded(request: Request, more: OutgoingHttpHeaders = {}): Promise<void> {
  expect(await send(request, more)).toBe('new');
  await eventually('the event to be known', 30_000, async () => (await send(request, more)) === 'duplicate');
}

/** The header in which the provider sends an id that it does not sign, and its valid values. */
const idHeaders: Partial<Record<Provider, string>> = {
  github: 'x-github-delivery',
  gitlab: 'idempotency-key',
  shopify: 'x-shopify-webhook-id',
  twilio: 'i-twilio-idempotency-token',
  sentry: 'request-id',
  bitbucket: 'x-request-uuid',
};

const at = '2026-11-25T12:00:00Z';
const json = JSON.stringify;
/** For each provider events as it sends them, no two of which are equal, and such as it may send again with the same body. */
const events: Record<Provider, { distinct: string[]; repeated: string[] }> = {
  generic: { distinct: [], repeated: ['{"id":"1"}'] },
  custom: { distinct: [], repeated: ['{"id":"1"}'] },
  github: {
    distinct: [
      json({ ref: 'refs/heads/main', before: 'a', after: 'b', pusher: { name: 'octocat' }, repository: { pushed_at: 1 } }),
      json({ action: 'opened', issue: { updated_at: at } }),
      json({ action: 'synchronize', pull_request: { updated_at: at } }),
      json({ action: 'completed', workflow_run: { updated_at: at } }),
      json({ action: 'created', starred_at: at }),
    ],
    repeated: [
      json({ zen: 'Keep it logically awesome.', hook_id: 1 }),
      json({ ref: 'refs/heads/main', workflow: '.github/workflows/ci.yml', inputs: null, repository: { updated_at: at } }),
      json({ action: 'removed', scope: 'team', member: { login: 'octocat' }, team: { id: 1 } }),
      json({ action: 'pinned', issue: { updated_at: at } }),
      '{}',
      'no json',
    ],
  },
  gitlab: { distinct: ['{"object_kind":"push"}'], repeated: [] },
  stripe: { distinct: ['{"id":"evt_1"}'], repeated: [] },
  shopify: { distinct: [json({ id: 1, updated_at: at })], repeated: [json({ shop_id: 1, shop_domain: 'a.example' })] },
  slack: { distinct: ['{"event_id":"Ev1"}'], repeated: [] },
  twilio: { distinct: ['MessageSid=SM1&MessageStatus=sent'], repeated: ['CallSid=CA1&Digits=1'] },
  paddle: { distinct: ['{"event_id":"evt_1"}'], repeated: [] },
  'standard-webhooks': { distinct: ['{"type":"a"}'], repeated: [] },
  svix: { distinct: ['{"type":"a"}'], repeated: [] },
  intercom: { distinct: ['{"id":"notif_1"}'], repeated: [] },
  sentry: {
    distinct: [json({ action: 'triggered', data: { event: { event_id: 'e1' } } }), json({ data: { error: { event_id: 'e1' } } })],
    repeated: [json({ action: 'resolved', data: { issue: { id: '1', status: 'resolved' } } })],
  },
  bitbucket: {
    distinct: [json({ pullrequest: { id: 1, updated_on: at } }), json({ comment: { updated_on: at } })],
    repeated: [json({ push: { changes: [{ created: true, new: { name: 'main', target: { hash: 'b' } } }] } })],
  },
  // Its ingest URL takes none.
  posthorn: { distinct: [], repeated: [] },
};
const distinct = providerNames.flatMap((provider) => events[provider].distinct.map((body) => [provider, body] as const));
const repeated = providerNames.flatMap((provider) => events[provider].repeated.map((body) => [provider, body] as const));

describe('a recorded request', () => {
  test.each(distinct)(
    'a recorded request of %s is a duplicate as it was, with another unsigned id and without one: %s',
    async (provider, body) => {
      await publish(provider);
      const request = signers[provider](body);
      const header = idHeaders[provider] ?? 'idempotency-key';
      await recorded(request, { [header]: 'first' });
      expect(await send(request, { [header]: 'second' })).toBe('duplicate');
      expect(await send(request)).toBe('duplicate');
    },
  );

  test.each(repeated)(
    'a recorded request of %s whose body another event may have is a duplicate by its id alone: %s',
    async (provider, body) => {
      const header = idHeaders[provider] ?? 'x-id';
      await publish(provider, header === 'x-id' ? { dedup: dedup('provider_id', header) } : {});
      const request = signers[provider](body);
      await recorded(request, { [header]: 'first' });
      expect(await send(request, { [header]: 'second' })).toBe('new');
    },
  );

  test.each(distinct)(
    'a recorded request of %s is a duplicate with another value in a header that the source looks at: %s',
    async (provider, body) => {
      await publish(provider, { dedup: dedup('idempotency_key', 'x-key') });
      const request = signers[provider](body);
      await recorded(request, { 'x-key': 'first' });
      expect(await send(request, { 'x-key': 'second' })).toBe('duplicate');
    },
  );

  test('a recorded request of a form is a duplicate with its fields in another order', async () => {
    await publish('twilio');
    const fields: [string, string][] = [
      ['MessageSid', 'SM1'],
      ['MessageStatus', 'sent'],
    ];
    const request = twilioForm(fields);
    await recorded(request, { 'i-twilio-idempotency-token': '1' });
    const turned = { ...request, body: new URLSearchParams([...fields].reverse()).toString() };
    expect(await send(turned, { 'i-twilio-idempotency-token': '2' })).toBe('duplicate');
  });

  test('a recorded request is a duplicate with its signature in other letters', async () => {
    await publish('github');
    const [push = ''] = events.github.distinct;
    const github = signers.github(push);
    await recorded(github, { 'x-github-delivery': '1' });
    const signature = `sha256=${hmac('sha256', push, 'hex').toUpperCase()}`;
    expect(await send(github, { 'x-github-delivery': '2', 'x-hub-signature-256': signature })).toBe('duplicate');
  });

  test('a recorded request of a GitHub hook that sends forms is a duplicate with another id', async () => {
    await publish('github');
    const signed = signers.github(new URLSearchParams({ payload: events.github.distinct[0] ?? '' }).toString());
    const request = { ...signed, headers: { ...signed.headers, 'content-type': form } };
    await recorded(request, { 'x-github-delivery': '1' });
    expect(await send(request, { 'x-github-delivery': '2' })).toBe('duplicate');
  });

  test('a recorded request of a large body is a duplicate with another id', async () => {
    await publish('github', { payloadLimitBytes: 1_000_000 });
    const request = signers.github(json({ issue: { body: 'x'.repeat(300_000), updated_at: at } }));
    await recorded(request, { 'x-github-delivery': '1' });
    expect(await send(request, { 'x-github-delivery': '2' })).toBe('duplicate');
  });
});

describe('an honest event', () => {
  test.each(['http://in.example', 'https://in.example:8443'])(
    'of Twilio that is sent to the whole URL at %s is verified',
    async (origin) => {
      await publish('twilio');
      expect(await send({ ...signers.twilio('CallSid=CA1&Digits=1'), path: origin + path })).toBe('new');
    },
  );

  test('an honest event of Shopify with the body of another topic is new', async () => {
    await publish('shopify');
    const [body = ''] = events.shopify.distinct;
    const request = signers.shopify(body);
    await recorded(request, { 'x-shopify-topic': 'orders/create', 'x-shopify-webhook-id': '1' });
    expect(await send(request, { 'x-shopify-topic': 'orders/paid', 'x-shopify-webhook-id': '2' })).toBe('new');
  });

  test('an honest event that GitHub delivers again by hand has its id, and is a duplicate whatever its body', async () => {
    await publish('github');
    for (const body of events.github.repeated)
      await recorded(signers.github(body), { 'x-github-delivery': createHash('sha1').update(body).digest('hex') });
  });

  test('an honest event of a source without a secret is known by its id alone', async () => {
    await ingest.publishSource();
    const request = signers.github(events.github.distinct[0] ?? '');
    await recorded(request, { 'x-github-delivery': '1' });
    expect(await send(request, { 'x-github-delivery': '2' })).toBe('new');
  });

  test('an honest event of GitLab that shows its secret token is known by its id alone, because nothing is signed', async () => {
    const context = recordSealingContext('org_a', 'source', 'src_a', 'signingSecrets');
    await publish('gitlab', { signingSecrets: [ingest.keyring.seal(secret, context)] });
    const request = { headers: { 'x-gitlab-token': secret }, body: '{}' };
    await recorded(request, { 'idempotency-key': '1' });
    expect(await send(request, { 'idempotency-key': '2' })).toBe('new');
  });
});
