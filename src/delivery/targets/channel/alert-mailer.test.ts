import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';
import { type CertificateAuthority, createCertificateAuthority } from '../../../../test/support/certificate-authority.ts';
import { FakeClock } from '../../../../test/support/fake-clock.ts';
import { silentLogger } from '../../../../test/support/logger.ts';
import { type RedisServer, startRedis } from '../../../../test/support/redis.ts';
import { sampleAlert } from '../../../../test/support/sample-alert.ts';
import { mailerTo, type SmtpReceiver, startSmtpReceiver } from '../../../../test/support/smtp-receiver.ts';
import { MailBudget } from '../../../data/alerts/mail-budget.ts';
import { systemClock } from '../../../runtime/system-clock.ts';
import { mailCounter } from '../../metrics.ts';
import type { HttpResult } from '../http/http-exchange.ts';
import { alertEmail } from './alert-email.ts';
import { AlertMailer } from './alert-mailer.ts';
import type { Mailer } from './mailer.ts';

const login = { user: 'posthorn', password: 'canary-password' };
const evening = Date.UTC(2026, 10, 25, 23, 59, 0);
let redis: RedisServer;
let authority: CertificateAuthority;
let smtp: SmtpReceiver;
let mailer: Mailer;
let clock: FakeClock;
let metrics: Registry;
let refuses = false;

beforeAll(async () => {
  redis = await startRedis();
  authority = createCertificateAuthority();
  smtp = await startSmtpReceiver({
    ...login,
    ...authority.issue(['127.0.0.1']),
    onRcptTo: (_address, _session, done) => done(refuses ? Object.assign(new Error('no such mailbox'), { responseCode: 550 }) : null),
  });
  mailer = mailerTo(smtp, { credentials: login, from: 'alerts@example.com', ca: [authority.text] });
});
afterAll(async () => {
  mailer.close();
  await Promise.all([smtp.stop(), redis.stop()]);
  authority.remove();
});
beforeEach(async () => {
  await redis.client.flushall();
  clock = new FakeClock(evening);
  metrics = new Registry();
  refuses = false;
});

/** A worker of its own with a budget of four e-mails. */
function worker(domains: string[] = []): AlertMailer {
  const budget = new MailBudget({ redis: redis.client, prefix: 'test:', clock }, 4);
  return new AlertMailer({ mailer, budget, domains, mails: mailCounter(metrics), confirmer: null, logger: silentLogger });
}

const addresses = (count: number, domain = 'example.com'): string[] => Array.from({ length: count }, (_, i) => `n${i}@${domain}`);

async function send(by: AlertMailer, to: number | string[], account = 'org_a'): Promise<string> {
  const mail = { account, to: typeof to === 'number' ? addresses(to) : to, id: 'msg_1', ...alertEmail(sampleAlert()) };
  const result: HttpResult = await by.send(mail, { timeoutMs: 30_000, clock: systemClock, signal: new AbortController().signal });
  return result.type === 'error' ? result.error.message : String(result.status);
}

const overBudget = 'the organization has used its budget of 4 e-mails of the day (UTC)';

test('an e-mail goes to addresses of allowed domains alone, and uses none of the budget for others', async () => {
  const by = worker(['example.com']);
  const before = smtp.mails.length;
  const refused = 'this installation sends no e-mail to n0@evil.example, n1@evil.example: it allows example.com';
  expect(await send(by, addresses(2, 'evil.example'))).toBe(refused);
  expect(smtp.mails.length).toBe(before);
  expect(await send(by, [...addresses(2), ...addresses(3, 'evil.example'), ...addresses(1, 'sub.example.com')])).toBe('250');
  expect(smtp.mails.slice(before).map(({ to }) => to)).toEqual([addresses(2)]);
  expect([await send(by, 2), await send(by, 1)]).toEqual(['250', overBudget]);
  expect(await metrics.getSingleMetricAsString('posthorn_mails_total')).toContain('{outcome="refused"} 6');
});

describe('the budget of e-mails', () => {
  test('the budget of e-mails counts each address, over all workers, and ends at midnight UTC', async () => {
    const one = worker();
    metrics.clear();
    const other = worker();
    const before = smtp.mails.length;
    expect([await send(one, 3), await send(other, 2), await send(other, 1), await send(one, 1)]).toEqual([
      '250',
      overBudget,
      '250',
      overBudget,
    ]);
    expect(smtp.mails.length - before).toBe(2);
    expect(await metrics.getSingleMetricAsString('posthorn_mails_total')).toMatch(/sent"} 1\n.*failed"} 0\n.*over_budget"} 2/);
    await clock.advance(60_000);
    expect(await send(one, 4)).toBe('250');
  });

  test('the budget of e-mails is one of each organization', async () => {
    const by = worker();
    expect([await send(by, 4), await send(by, 1), await send(by, 4, 'org_b')]).toEqual(['250', overBudget, '250']);
  });

  test('the budget of e-mails is kept whatever comes at once', async () => {
    const by = worker();
    const before = smtp.mails.length;
    const outcomes = await Promise.all(Array.from({ length: 9 }, () => send(by, 1)));
    expect(outcomes.filter((outcome) => outcome === '250').length).toBe(4);
    expect(smtp.mails.length - before).toBe(4);
  });

  test('the budget of e-mails is not used by what the mail server refuses', async () => {
    const by = worker();
    refuses = true;
    for (let i = 0; i < 3; i++) expect(await send(by, 2)).toBe('550');
    refuses = false;
    expect([await send(by, 4), await send(by, 1)]).toEqual(['250', overBudget]);
  });

  test('the budget of e-mails lets nothing out while Redis does not answer', async () => {
    const { client: own } = redis;
    const dead = own.duplicate({ lazyConnect: true, enableOfflineQueue: false, retryStrategy: () => null });
    dead.on('error', () => {});
    const budget = new MailBudget({ redis: dead, prefix: 'test:', clock }, 4);
    const before = smtp.mails.length;
    expect(
      await send(new AlertMailer({ mailer, budget, domains: [], mails: mailCounter(metrics), confirmer: null, logger: silentLogger }), 1),
    ).not.toBe('250');
    expect(smtp.mails.length).toBe(before);
  });
});
