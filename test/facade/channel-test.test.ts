import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import type { Mailer } from '../../src/delivery/targets/channel/mailer.ts';
import { type CertificateAuthority, createCertificateAuthority } from '../support/certificate-authority.ts';
import { eventually } from '../support/eventually.ts';
import { startReceiver } from '../support/receiver.ts';
import { mailerTo, type SmtpReceiver, startSmtpReceiver } from '../support/smtp-receiver.ts';
import { startTlsReceiver, type TlsReceiver } from '../support/tls-receiver.ts';
import { waitForPeriodStart } from '../support/wait-for-period-start.ts';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const password = 'canary-password';
let world: FacadeWorld;
let withoutMail: FacadeWorld;
let authority: CertificateAuthority;
let ops: TlsReceiver;
let smtp: SmtpReceiver;
const mailers: Mailer[] = [];

beforeAll(async () => {
  authority = createCertificateAuthority();
  ops = await startTlsReceiver({
    tls: authority.issue(['127.0.0.1']),
    address: '127.0.0.1',
    respond: ({ path }) => (path === '/refuses' ? 403 : 204),
  });
  smtp = await startSmtpReceiver({ user: 'posthorn', password, ...authority.issue(['127.0.0.1']) });
  const login = { user: 'posthorn', password };
  const mailer = mailerTo(smtp, { credentials: login, from: 'alerts@example.com', ca: [authority.text] });
  mailers.push(mailer);
  [world, withoutMail] = await Promise.all([startFacadeWorld(), startFacadeWorld()]);
  await Promise.all([world.startWorker({ extraCa: authority.text, mailer, mailsPerDay: 120 }), withoutMail.startWorker()]);
});
afterAll(async () => {
  await Promise.all([world.stop(), withoutMail.stop(), ops.stop()]);
  for (const mailer of mailers) mailer.close();
  await smtp.stop();
  authority.remove();
});

async function testOf(body: object, where = world) {
  const { id } = await where.create('notification-channels', body);
  return where.request('POST', `/api/notification-channels/${id}/test`);
}

describe('a test of a channel', () => {
  test('a test of a channel of type webhook sends a test alert, signed and with its headers, also while the channel is disabled', async () => {
    const config = { url: ops.url('/alerts'), headers: { 'X-Key': 'canary-header' }, secret };
    const answer = await testOf({ type: 'webhook', name: 'Ops', enabled: false, config });
    const { detail, ...rest } = answer.body;
    expect([answer.status, rest]).toEqual([200, { success: true, message: 'The channel took the test alert.' }]);
    expect(detail).toMatchObject({
      requestHeaders: { 'x-key': '••••', 'webhook-signature': expect.stringMatching(/^v1,/) },
      peerAddress: new URL(ops.url()).host,
      phases: { tlsMs: expect.any(Number), firstByteMs: expect.any(Number) },
    });
    const request = ops.requests.find(({ path }) => path === '/alerts');
    expect(request?.headers['x-key']).toBe('canary-header');
    const alert = new Webhook(secret).verify(request?.body.toString() ?? '', request?.headers as Record<string, string>);
    expect(alert).toMatchObject({ type: 'delivery.failed', route: { name: 'Ops' }, test: true });
  });

  test('a test of a channel of type email sends an e-mail that says that it is a test', async () => {
    const answer = await testOf({ type: 'email', name: 'Team', config: { addresses: ['team@example.com'] } });
    expect(answer.body).toMatchObject({ success: true });
    const [received] = await smtp.arrived(1);
    expect(received?.to).toEqual(['team@example.com']);
    expect(received?.mail.text).toContain('This is a test of the notification channel "Team". Nothing has happened.');
  });

  test('a test of a channel that is refused, or cannot be reached, is answered with 200 and why', async () => {
    const headers = { 'X-Key': 'canary-header' };
    const refused = await testOf({ type: 'webhook', config: { url: ops.url('/refuses'), headers } });
    expect([refused.status, refused.body]).toEqual([
      200,
      { success: false, error: 'http_error', message: 'the receiver answered 403', detail: expect.objectContaining({ responseBytes: 0 }) },
    ]);
    const away = await testOf({ type: 'webhook', config: { url: 'https://127.0.0.1:9/', headers } });
    expect([away.status, away.body]).toEqual([
      200,
      { success: false, error: expect.any(String), message: expect.any(String), detail: expect.objectContaining({ requestHeaders: null }) },
    ]);
    expect(away.text).not.toContain('canary');
  });

  test('the alerts of a channel show its tests, the newest first, without what is secret; those of another organization are not found', async () => {
    const config = { url: ops.url('/refuses'), headers: { 'X-Key': 'canary-header' }, secret };
    const { id } = await world.create('notification-channels', { type: 'webhook', config });
    const path = `/api/notification-channels/${id}`;
    expect((await world.request('GET', `${path}/alerts`)).body).toEqual({ data: [] });
    await world.request('POST', `${path}/test`);
    await world.request('PATCH', path, { body: { config: { url: ops.url('/alerts') } } });
    await world.request('POST', `${path}/test`);
    const shown = await eventually(async () => {
      const answer = await world.request('GET', `${path}/alerts`);
      expect(answer.body.data).toHaveLength(2);
      return answer;
    });
    const test = { id: expect.stringMatching(/^test_/), type: 'delivery.failed', isTest: true, route: null, destination: null, count: 1 };
    const attempted = { ...test, attempts: 1, lastAttemptAt: expect.any(String) };
    expect(shown.body.data).toEqual([
      { ...attempted, status: 'delivered', responseStatus: 204, errorMessage: null },
      { ...attempted, status: 'failed', responseStatus: 403, errorMessage: 'the receiver answered 403' },
    ]);
    expect(shown.text).not.toContain('canary');
    expect((await world.request('GET', path)).body.lastNotifiedAt).toBeNull();
    await world.addOrganization('hooli');
    const stranger = await world.addKey('hooli');
    expect((await world.request('GET', `${path}/alerts`, { key: stranger })).status).toBe(404);
    const [arrived, refused] = shown.body.data;
    const explain = (alert: { id: string }, key?: string) => world.request('GET', `/api/explain/${alert.id}`, { key });
    expect((await explain(arrived)).body).toMatchObject({ kind: 'alert', state: 'delivered', waitsFor: null, advice: [] });
    expect((await explain(refused)).body).toMatchObject({
      id: refused.id,
      state: 'failed',
      summary: expect.stringMatching(/^The test of the notification channel ".*" has failed after 1 attempt\.$/),
      story: [
        { what: 'attempt', text: 'Attempt 1 failed: the receiver answered 403.' },
        { what: 'tells', text: 'It is a test of the channel: nothing has happened.', data: { channelId: id, isTest: true } },
      ],
      advice: [{ command: expect.stringContaining(`${path}/test"`) }],
    });
    expect((await explain(refused, stranger)).status).toBe(404);
    expect((await world.request('DELETE', path)).status).toBe(204);
    expect((await world.request('GET', `${path}/alerts`)).status).toBe(404);
  });

  test.each([
    [200, '1', null],
    [200, '', null],
    [200, '{"status":"posted"}', null],
    [202, 'Accepted', null],
    [
      200,
      'Webhook message delivery failed with error: Microsoft Teams endpoint returned HTTP error 429 with ContextId tcid=0,server=a',
      'the receiver answered 200: Webhook message delivery failed with error: Microsoft Teams endpoint returned HTTP error 429 with ContextId tcid=0,server=a',
    ],
    [200, ` ${'too\nlarge '.repeat(50)}`, `the receiver answered 200: ${`${'too large '.repeat(50)}`.slice(0, 299)}…`],
    [200, 'you sent /hook?sig=canary-teams', 'the receiver answered 200: you sent ••••'],
    [400, 'Summary or Text is required.', 'the receiver answered 400'],
  ])('a test of a channel of type teams that is answered %i with %j fails with %j', async (status, said, message) => {
    const teams = await startReceiver((response) => response.writeHead(status).end(said), authority.issue(['127.0.0.1']));
    try {
      const webhookUrl = `https://127.0.0.1:${new URL(teams.url).port}/hook?sig=canary-teams`;
      const { body } = await testOf({ type: 'teams', config: { webhookUrl } });
      const { detail: _, ...rest } = body;
      expect(JSON.stringify(body)).not.toContain('canary');
      expect(rest).toEqual(
        message === null ? { success: true, message: expect.any(String) } : { success: false, error: 'http_error', message },
      );
    } finally {
      await teams.close();
    }
  });

  test('a test of a channel of type email says what is missing where no server is configured', async () => {
    const answer = await testOf({ type: 'email', config: { addresses: ['team@example.com'] } }, withoutMail);
    expect(answer.body).toEqual({
      success: false,
      error: 'not_configured',
      message: 'no SMTP server is configured: e-mail needs POSTHORN_SMTP_HOST and POSTHORN_SMTP_FROM',
    });
  });

  test('a test of a channel of type email that would exceed the e-mails of the day is not sent, and reports it', async () => {
    await waitForPeriodStart(86_400_000);
    await world.addOrganization('umbrella');
    const key = await world.addKey('umbrella');
    const addresses = Array.from({ length: 50 }, (_, i) => `n${i}@example.com`);
    const before = smtp.mails.length;
    const tests: { success: boolean }[] = [];
    for (let i = 0; i < 3; i++) {
      const { id } = await world.create('notification-channels', { type: 'email', config: { addresses } }, key);
      tests.push((await world.request('POST', `/api/notification-channels/${id}/test`, { key })).body);
    }
    const over = { success: false, error: 'blocked', message: 'the organization has used its budget of 120 e-mails of the day (UTC)' };
    expect(tests).toEqual([expect.objectContaining({ success: true }), expect.objectContaining({ success: true }), over]);
    expect(smtp.mails.length - before).toBe(2);
  });

  test('a test of a channel of type email has 5 in an hour for all channels of an organization, whatever its plan; other types and organizations have theirs', async () => {
    await world.addOrganization('globex', 'enterprise');
    await world.addOrganization('initech', 'free');
    const [globex, initech] = [await world.addKey('globex'), await world.addKey('initech', { role: 'developer' })];
    const channel = async (key: string, body: object): Promise<() => ReturnType<FacadeWorld['request']>> => {
      const { id } = await world.create('notification-channels', body, key);
      return () => world.request('POST', `/api/notification-channels/${id}/test`, { key });
    };
    const email = { type: 'email', config: { addresses: ['team@example.com'] } };
    const [one, other] = [await channel(globex, email), await channel(globex, email)];
    for (const send of [one, other, one, other, one]) expect((await send()).body).toMatchObject({ success: true });
    for (const send of [one, other]) {
      const { status, body, headers } = await send();
      expect([status, body]).toEqual([
        429,
        {
          error: 'Too Many Requests',
          message: 'The organization is limited to 5 tests of e-mail channels per hour.',
          code: 'RATE_LIMITED',
        },
      ]);
      const retryAfterSeconds = Number(headers.get('retry-after'));
      expect(retryAfterSeconds).toBeGreaterThan(3000);
      expect(retryAfterSeconds).toBeLessThanOrEqual(3600);
    }
    const webhook = await channel(globex, { type: 'webhook', config: { url: ops.url('/alerts') } });
    expect((await webhook()).body).toMatchObject({ success: true });
    expect((await (await channel(initech, email))()).body).toMatchObject({ success: true });
  });

  test('a test of a channel that does not exist is 404', async () => {
    expect((await world.request('POST', '/api/notification-channels/nowhere/test')).status).toBe(404);
  });

  test('a test of a channel leaves lastNotifiedAt as it is, and no secret in a log line', async () => {
    const { data } = (await world.request('GET', '/api/notification-channels')).body;
    expect(data.length).toBeGreaterThan(0);
    for (const { lastNotifiedAt } of data) expect(lastNotifiedAt).toBeNull();
    expect(world.logLines.join('\n')).not.toContain('canary');
  });
});
