import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { type RunningControllers, startControllers } from '../../../test/support/controllers.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { silentLogger } from '../../../test/support/logger.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import type { Clock } from '../../core/clock.ts';
import { MailBudget, SpentMailBudgets } from '../../data/alerts/mail-budget.ts';
import { MailRecipients } from '../../data/alerts/mail-recipients.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { MemoryStore } from '../../store/memory/memory-store.ts';
import { idOf } from '../held-ids.ts';
import { runMailHealth } from './mail-health.ts';

const prefix = 'test:';
const options = { manager: 'test', force: true };
const dayMs = 86_400_000;
let offsetMs: number;
/** Checks often; the test sets the day. */
const hasty: Clock = { ...systemClock, now: () => systemClock.now() + offsetMs, sleep: (_, signal) => systemClock.sleep(20, signal) };
let redis: RedisServer;
let store: MemoryStore;
let controllers: RunningControllers;
let health: { end: AbortController; ended: Promise<void> };
let org: string;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  offsetMs = Date.UTC(2026, 10, 25, 12, 0, 0) - systemClock.now();
  await redis.client.flushall();
  store = new MemoryStore(systemClock);
  // The controllers' own check has the time of the system: the one of the test runs alone.
  const mailBudgets = { onDayOf: () => Promise.reject(new Error('not asked')) };
  controllers = startControllers({ store, redis: redis.client, prefix, mailBudgets });
  watch(null);
  const spec = { namespace: 'acme' };
  org = idOf('Organization', await store.apply({ kind: 'Organization', metadata: { name: 'acme' }, spec }, options));
  await eventually(() => putChannel('mail', { type: 'email', email: { addresses: ['team@example.com'] } }));
});
afterEach(async () => {
  health.end.abort();
  await health.ended;
  await controllers.stop();
});

/** Runs from now on; if confirmation is required, by the answers of the recipients. */
function watch(mailRecipients: MailRecipients | null): void {
  const end = new AbortController();
  const watching = {
    caches: controllers.caches,
    mailBudgets: new SpentMailBudgets({ redis: redis.client, prefix }),
    mailRecipients,
    recorder: { record: (event: (typeof controllers.events)[number]) => void controllers.events.push(event) },
    clock: hasty,
    logger: silentLogger,
    store,
  };
  health = { end, ended: runMailHealth(watching, end.signal) };
}

const putChannel = (name: string, spec: object) =>
  store.apply({ kind: 'NotificationChannel', metadata: { namespace: 'acme', name }, spec }, options);
const putRoute = (name: string, spec: object = {}) =>
  store.apply(
    {
      kind: 'Route',
      metadata: { namespace: 'acme', name },
      spec: { sourceRef: { name: 'orders' }, destinationRefs: [{ name: 'shop' }], ...spec },
    },
    options,
  );

async function condition(
  kind: 'NotificationChannel' | 'Route',
  name: string,
  type = 'WithinMailBudget',
  namespace = 'acme',
): Promise<string | undefined> {
  const { status } = await store.get(kind, { namespace, name });
  const found = status?.conditions?.find((each) => each.type === type);
  return found === undefined ? undefined : `${found.status} ${found.reason}`;
}

const refuse = () => new MailBudget({ redis: redis.client, prefix, clock: hasty }, 1).take(org, 2);

test('an organization that has used up its e-mails of the day has a condition at its e-mail channels and routes, until the next day', async () => {
  await putChannel('hook', { type: 'webhook', webhook: { url: 'https://ops.example/' } });
  await putRoute('mails', { notifications: { onFailure: true, emails: ['team@example.com'] } });
  await putRoute('silent');
  await eventually(async () => expect(await condition('NotificationChannel', 'mail', 'Ready')).toBe('True Ready'));
  expect(await condition('NotificationChannel', 'mail')).toBeUndefined();
  expect(await refuse()).toBeNull();
  await eventually(async () => {
    expect(await condition('NotificationChannel', 'mail')).toBe('False MailBudgetSpent');
    expect(await condition('Route', 'mails')).toBe('False MailBudgetSpent');
  });
  expect(await condition('NotificationChannel', 'mail', 'Ready')).toBe('True Ready');
  const events = () => controllers.events.filter(({ reason }) => reason === 'MailBudgetSpent');
  await eventually(() =>
    expect(
      events()
        .map(({ object, type }) => [object.metadata.name, type])
        .sort(),
    ).toEqual([
      ['mail', 'Warning'],
      ['mails', 'Warning'],
    ]),
  );
  expect(events()[0]?.message).toBe('the organization has used its e-mail budget of 2026-11-25 (UTC); no e-mail is sent before midnight');
  offsetMs += dayMs;
  await eventually(async () => {
    expect(await condition('NotificationChannel', 'mail')).toBe('True MailBudgetLeft');
    expect(await condition('Route', 'mails')).toBe('True MailBudgetLeft');
  });
  expect([await condition('NotificationChannel', 'hook'), await condition('Route', 'silent')]).toEqual([undefined, undefined]);
  await putRoute('mails');
  await eventually(async () => expect(await condition('Route', 'mails')).toBeUndefined());
});

test('a budget that another organization has used up shows nowhere else', async () => {
  await store.apply({ kind: 'Organization', metadata: { name: 'globex' }, spec: { namespace: 'globex' } }, options);
  const email = { type: 'email', email: { addresses: ['team@globex.example'] } };
  await eventually(() =>
    store.apply({ kind: 'NotificationChannel', metadata: { namespace: 'globex', name: 'mail' }, spec: email }, options),
  );
  await eventually(async () => expect(await condition('NotificationChannel', 'mail', 'Ready', 'globex')).toBe('True Ready'));
  await refuse();
  await eventually(async () => expect(await condition('NotificationChannel', 'mail')).toBe('False MailBudgetSpent'));
  expect(await condition('NotificationChannel', 'mail', 'WithinMailBudget', 'globex')).toBeUndefined();
});

test('recipients that have not confirmed their address are in the conditions of channels and routes while that is required', async () => {
  health.end.abort();
  await health.ended;
  const recipients = new MailRecipients({ redis: redis.client, prefix });
  watch(recipients);
  await putRoute('mails', { notifications: { onFailure: true, emails: ['team@example.com', 'b@example.com'] } });
  await putRoute('silent');
  const said = async (kind: 'NotificationChannel' | 'Route', name: string) =>
    (await store.get(kind, { namespace: 'acme', name })).status?.conditions?.find(({ type }) => type === 'RecipientsConfirmed');
  await eventually(async () => {
    expect(await condition('NotificationChannel', 'mail', 'RecipientsConfirmed')).toBe('False AwaitingConfirmation');
    expect(await said('Route', 'mails')).toMatchObject({
      reason: 'AwaitingConfirmation',
      message: 'these recipients have not confirmed their addresses and receive no e-mail: team@example.com, b@example.com',
    });
  });
  await recipients.decide('org_other', 'team@example.com', 'confirmed');
  await recipients.decide(org, 'b@example.com', 'declined');
  await eventually(async () => expect((await said('Route', 'mails'))?.message).toMatch(/team@example.com, b@example.com \(declined\)$/));
  expect(await condition('NotificationChannel', 'mail', 'RecipientsConfirmed')).toBe('False AwaitingConfirmation');
  await recipients.decide(org, 'Team@example.com', 'confirmed');
  await eventually(async () => {
    expect(await condition('NotificationChannel', 'mail', 'RecipientsConfirmed')).toBe('True Confirmed');
    expect(await condition('Route', 'mails', 'RecipientsConfirmed')).toBe('False Declined');
  });
  expect(await condition('Route', 'silent', 'RecipientsConfirmed')).toBeUndefined();
});
