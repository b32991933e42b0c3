import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { type CertificateAuthority, createCertificateAuthority } from '../../../../test/support/certificate-authority.ts';
import { FakeClock } from '../../../../test/support/fake-clock.ts';
import { freePort } from '../../../../test/support/ports.ts';
import { sampleAlert } from '../../../../test/support/sample-alert.ts';
import { mailerTo, type SmtpReceiver, startSmtpReceiver } from '../../../../test/support/smtp-receiver.ts';
import { systemClock } from '../../../runtime/system-clock.ts';
import { alertEmail } from './alert-email.ts';

import { Mailer, type SmtpSettings } from './mailer.ts';

const signal = new AbortController().signal;
const credentials = { user: 'posthorn', password: 'canary-password' };
let authority: CertificateAuthority;
let server: SmtpReceiver | null = null;
let mailer: Mailer | null = null;

beforeAll(() => {
  authority = createCertificateAuthority();
});
afterAll(() => authority.remove());
afterEach(async () => {
  mailer?.close();
  await server?.stop();
  server = null;
});

async function start(options: Partial<Parameters<typeof startSmtpReceiver>[0]> = {}, settings: Partial<SmtpSettings> = {}) {
  server = await startSmtpReceiver({ ...credentials, ...authority.issue(['127.0.0.1']), ...options });
  mailer = mailerTo(server, { credentials, ca: [authority.text], ...settings });
  return { smtp: server, mailer };
}
const send = (by: Mailer, overrides: Parameters<typeof sampleAlert>[0] = {}, to = ['team@example.com', 'ops@example.com']) =>
  by.send({ account: 'org_a', to, id: 'msg_1', ...alertEmail(sampleAlert(overrides)) }, { timeoutMs: 30_000, clock: systemClock, signal });

describe('an e-mail', () => {
  test('an e-mail goes over STARTTLS with a login, and reads back as text and HTML', async () => {
    const { smtp, mailer: by } = await start();
    expect(await send(by)).toMatchObject({ type: 'response', status: 250 });
    const [received] = await smtp.arrived(1);
    expect(received).toMatchObject({
      from: 'alerts@example.com',
      to: ['team@example.com', 'ops@example.com'],
      user: 'posthorn',
      isEncrypted: true,
    });
    expect(received?.mail).toMatchObject({
      subject: '[Posthorn] Deliveries fail: Orders',
      from: { name: 'Posthorn', address: 'alerts@example.com' },
      messageId: '<msg_1@posthorn>',
    });
    expect(received?.mail.text).toContain('3 messages of route "Orders" could not be delivered to "Shop".');
    expect(received?.mail.text).toContain('Response status: 503');
    expect(received?.mail.html).toContain('<th align="left" valign="top">Response status</th><td>503</td>');
    expect(received?.mail.headers.find(({ key }) => key === 'auto-submitted')?.value).toBe('auto-generated');
  });

  test('an e-mail shows what users wrote as it is, and no name can add a header or a recipient', async () => {
    const { smtp, mailer: by } = await start();
    const name = 'A <b>&"\'\r\nBcc: victim@example.com\r\n\r\n<script>alert(1)</script>';
    expect(await send(by, { route: { id: 'rte_a', name } })).toMatchObject({ status: 250 });
    const [received] = await smtp.arrived(1);
    expect(received?.to).toEqual(['team@example.com', 'ops@example.com']);
    expect(received?.mail.bcc).toBeUndefined();
    expect(received?.mail.subject).toContain('Bcc: victim[@]example.com');
    expect(received?.raw.split('\r\n\r\n')[0]).not.toMatch(/^Bcc:/im);
    expect(received?.mail.html).not.toContain('<script>');
    expect(received?.mail.html).toContain('&lt;script&gt;');
  });

  test('an e-mail has no links, whatever names users choose, and the subject of a test names nobody', async () => {
    const { smtp, mailer: by } = await start();
    const name = 'Invoice: pay at HTTPS://evil.example/pay, www.evil.example, mailto:a@evil.example now';
    for (const kind of [{}, { test: true as const }]) await send(by, { route: { id: 'rte_a', name }, ...kind });
    const [alert, tested] = await smtp.arrived(2);
    for (const { mail } of [alert, tested].filter((each) => each !== undefined))
      expect(`${mail.subject}\n${mail.text}\n${mail.html}`).not.toMatch(/:\/\/|www\.|mailto:|a@evil/i);
    expect(alert?.mail.text).toContain('HTTPS[:]//evil.example/pay');
    expect(tested?.mail.subject).toBe('[Posthorn] Test alert');
  });

  test.each([
    ['a wrong password', {}, { credentials: { ...credentials, password: 'wrong' } }, { type: 'response', status: 535 }],
    ['a server without TLS', { hideSTARTTLS: true, disabledCommands: ['STARTTLS'] }, {}, {}],
    ['a server of an unknown authority', {}, { ca: [] }, { type: 'error' }],
    [
      'a refused recipient',
      {
        onRcptTo: (_address: unknown, _session: unknown, done: (error: Error) => void) =>
          done(Object.assign(new Error('no'), { responseCode: 550 })),
      },
      {},
      { type: 'response', status: 550 },
    ],
  ])('an e-mail fails with %s, and nothing is sent', async (_, options, settings, expected) => {
    const { smtp, mailer: by } = await start(options, settings);
    const result = await send(by);
    expect(result).toMatchObject(expected);
    expect(result).not.toMatchObject({ status: 250 });
    expect(smtp.mails).toEqual([]);
    expect(JSON.stringify(result.type === 'error' ? String(result.error) : result)).not.toContain('canary');
  });

  test('an e-mail fails when no server is there, or when it says nothing within the deadline', async () => {
    mailer = new Mailer({ host: '127.0.0.1', port: await freePort(), tls: 'off', credentials: null, from: 'a@example.com' });
    expect(await send(mailer)).toMatchObject({ type: 'error' });
    mailer.close();
    const { mailer: by } = await start({ onData: () => {} });
    const result = await by.send(
      { account: 'org_a', to: ['a@example.com'], id: 'm', ...alertEmail(sampleAlert()) },
      { timeoutMs: 500, clock: systemClock, signal },
    );
    expect(result).toMatchObject({ type: 'error', error: { message: 'no complete answer within 500 ms' } });
  });

  test('an e-mail of an organization that has a quarter of all under way fails at once, while those of others are sent', async () => {
    const { smtp, mailer: by } = await start({ onData: () => {} });
    const ended = new AbortController();
    const give = (account: string, id: string) =>
      by.send(
        { account, to: ['a@example.com'], id, ...alertEmail(sampleAlert()) },
        { timeoutMs: 30_000, clock: systemClock, signal: ended.signal },
      );
    const under = Array.from({ length: 9 }, (_, n) => give('org_a', `a${n}`));
    expect(await give('org_a', 'a9')).toMatchObject({
      error: { message: 'too many e-mails of the organization wait for the mail server' },
    });
    const others = Array.from({ length: 9 }, (_, n) => give('org_b', `b${n}`));
    expect(await give('org_b', 'b9')).toMatchObject({ error: { message: expect.stringContaining('of the organization') } });
    ended.abort();
    await Promise.all([...under, ...others]);
    await smtp.stop();
    server = null;
    expect(await give('org_a', 'later')).not.toMatchObject({ error: { message: expect.stringContaining('too many') } });
  });

  test('an e-mail that was given up is sent no more when the server is back, and one too many fails at once', async () => {
    const clock = new FakeClock();
    let hangs = true;
    const { smtp, mailer: by } = await start({ onConnect: (_session, done) => (hangs ? undefined : done()) });
    const stopped = new AbortController();
    let given = 0;
    const give = (id: string, ends: AbortSignal) =>
      by.send(
        { account: `org_${given++}`, to: ['a@example.com'], id, ...alertEmail(sampleAlert()) },
        { timeoutMs: 1000, clock, signal: ends },
      );
    const late = Array.from({ length: 30 }, (_, n) => give(`late${n}`, signal));
    const broken = Array.from({ length: 6 }, (_, n) => give(`broken${n}`, stopped.signal));
    expect(await give('refused', signal)).toMatchObject({ error: { message: 'too many e-mails wait for the mail server' } });
    stopped.abort(new Error('stopped'));
    for (const result of await Promise.all(broken)) expect(result).toMatchObject({ type: 'error', error: { message: 'stopped' } });
    await clock.advance(1000);
    for (const result of await Promise.all(late))
      expect(result).toMatchObject({ type: 'error', error: { message: 'no complete answer within 1000 ms' } });
    hangs = false;
    expect(await send(by)).toMatchObject({ type: 'response', status: 250 });
    expect(smtp.mails.map(({ mail }) => mail.messageId)).toEqual(['<msg_1@posthorn>']);
  });
});
