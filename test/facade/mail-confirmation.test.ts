import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { mailConfirmationMs, mailConfirmationToken } from '../../src/core/mail-confirmation.ts';
import { idempotentAnswerSealingContext } from '../../src/core/sealing-contexts.ts';
import type { Mailer } from '../../src/delivery/targets/channel/mailer.ts';
import { type CertificateAuthority, createCertificateAuthority } from '../support/certificate-authority.ts';
import { testKeyring } from '../support/controllers.ts';
import { mailerTo, type SmtpReceiver, startSmtpReceiver } from '../support/smtp-receiver.ts';
import { waitForPeriodStart } from '../support/wait-for-period-start.ts';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';

const publicUrl = 'https://posthorn.example';
const login = { user: 'posthorn', password: 'canary-password' };
let world: FacadeWorld;
let authority: CertificateAuthority;
let smtp: SmtpReceiver;
let mailer: Mailer;

beforeAll(async () => {
  authority = createCertificateAuthority();
  smtp = await startSmtpReceiver({
    ...login,
    ...authority.issue(['127.0.0.1']),
    onRcptTo: ({ address }, _session, done) => {
      const responseCode = Object.entries({ unknown: 550, busy: 450 }).find(([name]) => address.startsWith(name))?.[1];
      done(responseCode === undefined ? undefined : Object.assign(new Error('not now'), { responseCode }));
    },
  });
  mailer = mailerTo(smtp, { credentials: login, from: 'alerts@example.com', ca: [authority.text] });
  world = await startFacadeWorld({ requiresMailConfirmation: true });
  await world.startWorker({ mailer, mailsPerDay: 60, mailConfirmationUrl: `${publicUrl}/mail-confirmation` });
});
afterAll(async () => {
  await world.stop();
  mailer.close();
  await smtp.stop();
  authority.remove();
});

/** The admin of a new organization with a channel to these addresses, and the response of its test. */
async function channelOf(organization: string, ...addresses: string[]) {
  await world.addOrganization(organization);
  const key = await world.addKey(organization);
  const { id } = await world.create(
    'notification-channels',
    { type: 'email', name: 'Buy at https://evil.example/', config: { addresses } },
    key,
  );
  return async () => (await world.request('POST', `/api/notification-channels/${id}/test`, { key })).body;
}

/** E-mails that `run` causes, and its result. */
async function mailsOf<T>(run: () => Promise<T>) {
  const before = smtp.mails.length;
  const answer = await run();
  return { answer, mails: smtp.mails.slice(before) };
}

function linkIn(text: string | undefined): string {
  return /https:\S+/.exec(text ?? '')?.[0].slice(publicUrl.length) ?? '';
}

const open = (link: string) => fetch(world.baseUrl + link);
const answer = (link: string, said: string) => fetch(world.baseUrl + link, { method: 'POST', body: new URLSearchParams({ answer: said }) });

const waits = (...addresses: string[]) => ({
  success: false,
  error: 'blocked',
  message: `these recipients have not confirmed their addresses and receive no e-mail: ${addresses.join(', ')}`,
});
const taken = { success: true, message: 'The channel took the test alert.' };

describe('where addresses have to be confirmed, an address', () => {
  test('gets nothing but one link, in text that no user has written, until its owner has confirmed it by the form of the page', async () => {
    const send = await channelOf('one', 'a@example.com', 'b@example.com');
    const first = await mailsOf(send);
    expect(first.answer).toEqual(waits('a@example.com', 'b@example.com'));
    expect(first.mails.map(({ to }) => to)).toEqual([['a@example.com'], ['b@example.com']]);
    const [mail] = first.mails;
    expect([mail?.mail.subject, mail?.mail.html]).toEqual(['[Posthorn] Confirm your address for alerts', undefined]);
    expect(mail?.raw).not.toContain('evil');
    const link = linkIn(mail?.mail.text);
    const page = await open(link);
    expect([page.status, page.headers.get('cache-control'), page.headers.get('referrer-policy')]).toEqual([200, 'no-store', 'no-referrer']);
    expect(await page.text()).toContain('<strong>a@example.com</strong>');
    expect((await fetch(world.baseUrl + link, { method: 'HEAD' })).status).toBe(200);
    expect(await mailsOf(send)).toEqual({ answer: waits('a@example.com', 'b@example.com'), mails: [] });
    expect((await answer(link, 'maybe')).status).toBe(400);
    expect((await answer(link, 'confirmed')).status).toBe(200);
    const partly = await mailsOf(send);
    expect(partly.answer).toEqual({ success: true, message: `${taken.message} But ${waits('b@example.com').message}.` });
    expect(partly.mails.map(({ to }) => to)).toEqual([['a@example.com']]);
    await answer(linkIn(first.mails[1]?.mail.text), 'confirmed');
    const both = await mailsOf(send);
    expect(both.answer).toEqual(taken);
    expect(both.mails.map(({ to }) => to)).toEqual([['a@example.com', 'b@example.com']]);
  });

  test('that is confirmed for one organization gets nothing of another', async () => {
    const [mine, other] = [await channelOf('two', 'c@example.com'), await channelOf('three', 'c@example.com')];
    const { mails } = await mailsOf(mine);
    await answer(linkIn(mails[0]?.mail.text), 'confirmed');
    expect(await mine()).toEqual(taken);
    expect(await other()).toEqual(waits('c@example.com'));
  });

  test('that the mail server refuses does not keep others from their link, and is tried again only when that was for the moment', async () => {
    const send = await channelOf('seven', 'unknown@example.com', 'busy@example.com', 'h@example.com');
    const org = await world.organizationId('seven');
    expect((await mailsOf(send)).mails.map(({ to }) => to)).toEqual([['h@example.com']]);
    const asked = ['unknown', 'busy', 'h'].map((name) => world.redis.client.exists(`test:{recipients:${org}}:asked:${name}@example.com`));
    expect(await Promise.all(asked)).toEqual([1, 0, 1]);
  });

  test('whose owner declines gets nothing, and no other link', async () => {
    const send = await channelOf('four', 'd@example.com');
    const { mails } = await mailsOf(send);
    expect((await answer(linkIn(mails[0]?.mail.text), 'declined')).status).toBe(200);
    await world.redis.client.del(`test:{recipients:${await world.organizationId('four')}}:asked:d@example.com`);
    expect(await mailsOf(send)).toEqual({ answer: waits('d@example.com (declined)'), mails: [] });
  });

  test('is confirmed by no link that is forged, is for something else, or is older than 7 days', async () => {
    const send = await channelOf('five', 'e@example.com');
    await send();
    const org = await world.organizationId('five');
    const recipient = { org, address: 'e@example.com' };
    const good = mailConfirmationToken(recipient, testKeyring, Date.now());
    const other = testKeyring.seal(
      JSON.stringify({ ...recipient, expiresAtMs: Date.now() + 60_000 }),
      idempotentAnswerSealingContext(org, 'a'),
    );
    const old = mailConfirmationToken(recipient, testKeyring, Date.now() - mailConfirmationMs);
    const changed = `${good.slice(0, -4)}AAAA`;
    const gone = mailConfirmationToken({ ...recipient, org: 'org_gone' }, testKeyring, Date.now());
    for (const token of ['', 'x', other, old, changed, gone, `${good}&token=${good}`]) {
      const link = `/mail-confirmation?token=${token}`;
      expect([(await open(link)).status, (await answer(link, 'confirmed')).status]).toEqual([400, 400]);
    }
    expect(await send()).toEqual(waits('e@example.com'));
    expect((await answer(`/mail-confirmation?token=${good}`, 'confirmed')).status).toBe(200);
    expect(await send()).toEqual(taken);
  });

  test('is asked at the expense of the e-mails of the organization, and of at most 50 links a day', async () => {
    await waitForPeriodStart(86_400_000);
    const addresses = (letter: string) => Array.from({ length: 40 }, (_, i) => `${letter}${i}@example.com`);
    const one = await channelOf('six', ...addresses('f'));
    expect((await mailsOf(one)).mails.length).toBe(40);
    const key = await world.addKey('six');
    const { id } = await world.create('notification-channels', { type: 'email', config: { addresses: addresses('g') } }, key);
    const further = await mailsOf(() => world.request('POST', `/api/notification-channels/${id}/test`, { key }));
    expect(further.mails.length).toBe(10);
    const spent = await world.redis.client.get(
      `test:{rate:${await world.organizationId('six')}:mails:${new Date().toISOString().slice(0, 10)}}`,
    );
    expect(spent).toBe('50');
  });

  test.each([
    ['tags', (i: number) => `victim+${i}@example.com`],
    ['tags and capital letters', (i: number) => `${i % 2 === 0 ? 'Other' : 'oTHER'}+a${i}@example.com`],
  ])('with %s shares the links of its mailbox: three of an organization, and others are asked all the same', async (what, addressOf) => {
    const tagged = Array.from({ length: 20 }, (_, i) => addressOf(i));
    const organization = `tags-${what.length}`;
    const { mails } = await mailsOf(await channelOf(organization, ...tagged, `last-${what.length}@example.com`));
    expect(mails.map(({ to }) => to)).toEqual([...tagged.slice(0, 3), `last-${what.length}@example.com`].map((each) => [each]));
  });

  test('gets at most 20 links in 7 days, whatever organizations ask', async () => {
    let links = 0;
    for (let i = 0; i < 8; i++) {
      const send = await channelOf(`crowd-${i}`, ...[1, 2, 3].map((tag) => `crowded+${tag}@example.com`));
      links += (await mailsOf(send)).mails.length;
    }
    expect(links).toBe(20);
  });
});

test('the page to confirm addresses is not there where they need not be confirmed', async () => {
  const without = await startFacadeWorld();
  expect((await without.request('GET', '/mail-confirmation?token=x', { key: null })).status).toBe(404);
  await without.stop();
});
