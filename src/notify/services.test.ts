import { lookup as systemLookup } from 'node:dns';
import { createServer, type Server } from 'node:https';
import { isIP } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { startAlertingWorker } from '../../test/support/alerting-worker.ts';
import { type CertificateAuthority, createCertificateAuthority } from '../../test/support/certificate-authority.ts';
import { testKeyring } from '../../test/support/controllers.ts';
import { eventually } from '../../test/support/eventually.ts';
import { lenientClock } from '../../test/support/lenient-clock.ts';
import { silentLogger } from '../../test/support/logger.ts';
import { newEvent } from '../../test/support/new-event.ts';
import { startReceiver } from '../../test/support/receiver.ts';
import { RecordRegistry } from '../../test/support/record-registry.ts';
import { destinationRecord, organizationRecord, routeRecord } from '../../test/support/records.ts';
import { type RedisServer, startRedis } from '../../test/support/redis.ts';
import { mailerTo, type SmtpReceiver, startSmtpReceiver } from '../../test/support/smtp-receiver.ts';
import type { ChannelRecord, NotificationsRecord } from '../core/records.ts';
import { recordSealingContext, type SealedRecordField } from '../core/sealing-contexts.ts';
import { ChannelAlerts } from '../data/alerts/channel-alerts.ts';
import { RedisMessageAcceptor } from '../data/queue/message-acceptor.ts';
import { hashFields } from '../data/shard/hash-fields.ts';
import { channelTestTask } from '../data/tasks/channel-test-task.ts';
import { RedisTaskCaller } from '../data/tasks/task-caller.ts';
import { taskBlockSeconds } from '../data/tasks/task-kind.ts';
import type { Mailer } from '../delivery/targets/channel/mailer.ts';
import { blockingConnection } from '../redis/connection.ts';
import { systemClock } from '../runtime/system-clock.ts';

const prefix = 'test:';
/** The services listen at their URLs, on an address of this machine alone. */
const address = `127.${43 + Math.floor(Math.random() * 200)}.${Math.floor(Math.random() * 250)}.${1 + Math.floor(Math.random() * 250)}`;
const names = ['hooks.slack.com', 'discord.com', 'events.pagerduty.com', 'acme.webhook.office.com', 'prod-1.westeurope.logic.azure.com'];
const mayListen = process.getuid?.() === 0;

interface Request {
  host: string;
  path: string;
  body: Record<string, unknown>;
}

let redis: RedisServer;
let authority: CertificateAuthority;
let services: Server;
let smtp: SmtpReceiver;
let mailer: Mailer;
let requests: Request[];
let logLines: string[];
let metrics: Registry;
let registry: RecordRegistry;
const ends: (() => Promise<unknown>)[] = [];
const isUp = { shop: false };
/** Refusals of the services. */
let refusal: { status: number; headers: Record<string, string> } | null;

beforeAll(async () => {
  redis = await startRedis();
  authority = createCertificateAuthority();
  services = createServer(authority.issue(names), async (request, response) => {
    const body = JSON.parse((await buffer(request)).toString());
    requests.push({ host: request.headers.host ?? '', path: request.url ?? '', body });
    response
      .writeHead(refusal?.status ?? (request.headers.host === 'events.pagerduty.com' ? 202 : 200), refusal?.headers)
      .end(request.url?.startsWith('/hook') ? '1' : 'canary-echo');
  });
  if (mayListen) await new Promise<void>((resolve) => services.listen(443, address, resolve));
  const login = { user: 'posthorn', password: 'canary-password' };
  smtp = await startSmtpReceiver({ ...login, ...authority.issue(['127.0.0.1']) });
  mailer = mailerTo(smtp, { credentials: login, ca: [authority.text] });
});
afterAll(async () => {
  mailer.close();
  services.closeAllConnections();
  services.close();
  authority.remove();
  await Promise.all([smtp.stop(), redis.stop()]);
});
beforeEach(async () => {
  await redis.client.flushall();
  requests = [];
  logLines = [];
  metrics = new Registry();
  registry = new RecordRegistry();
  registry.put('organization', organizationRecord());
  isUp.shop = false;
  refusal = null;
  const shop = await startReceiver((response) => response.writeHead(isUp.shop ? 200 : 503).end());
  ends.push(() => shop.close());
  const retryPolicy = { maxRetries: 0, initialDelayMs: 100, maxDelayMs: 100, backoffMultiplier: 1 };
  registry.put('destination', destinationRecord({ url: shop.url }, { name: 'Shop', retryPolicy }));
});
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

/** The resolver of a machine that had the services. */
const lookup: typeof systemLookup = Object.assign(
  (name: string, options: object, callback: (error: null, found: { address: string; family: number }[]) => void) => {
    expect(options).toMatchObject({ all: true });
    const found = names.includes(name) ? address : isIP(name) > 0 ? name : '127.0.0.1';
    callback(null, [{ address: found, family: 4 }]);
  },
  { __promisify__: systemLookup.__promisify__ },
) as typeof systemLookup;

function worker(): void {
  const logger = pino({ level: 'debug' }, { write: (line: string) => void logLines.push(line) });
  ends.push(startAlertingWorker(redis, { prefix, registry, logger, metrics, mailer, lookup, extraCa: authority.text }));
}
const seal = (id: string, field: SealedRecordField, plain: string): string =>
  testKeyring.seal(plain, recordSealingContext('org_a', 'notificationChannel', id, field));
function channel(id: string, of: ChannelRecord): void {
  registry.put('notificationChannel', { v: 1, id, org: 'org_a', slug: id, name: id, enabled: true, channel: of, generation: 1 });
}
function route(changes: Partial<NotificationsRecord> = {}): void {
  const flags = { onFailure: true, onSuccess: true, onRecovery: true };
  const notifications = { ...flags, failureThreshold: 1, channelIds: null, emails: [], ...changes };
  registry.put('route', routeRecord({ name: 'Orders & <b>more</b>', notifications }));
}
async function send(): Promise<void> {
  await new RedisMessageAcceptor({ redis: redis.client, prefix, clock: lenientClock }).accept(newEvent());
}
const at = (host: string): Request[] => requests.filter((request) => request.host === host);

const onlyWithPort443 = mayListen ? describe : describe.skip;

onlyWithPort443('behind its real name and a certificate for it', () => {
  test('Slack gets a message in Block Kit', async () => {
    channel('nch_slack', {
      type: 'slack',
      webhookUrl: seal('nch_slack', 'webhookUrl', 'https://hooks.slack.com/services/T0/B0/canary-slack'),
    });
    route();
    worker();
    await send();
    await eventually(() => expect(at('hooks.slack.com')).toHaveLength(1));
    expect(at('hooks.slack.com')[0]).toMatchObject({
      path: '/services/T0/B0/canary-slack',
      body: {
        text: 'A message of route "Orders &amp; &lt;b&gt;more&lt;/b&gt;" could not be delivered to "Shop".',
        blocks: [{ type: 'header', text: { text: 'Deliveries fail' } }, { type: 'section' }, { type: 'section' }, { type: 'context' }],
      },
    });
  });

  test('Teams gets a card, from workflows and incoming webhooks', async () => {
    for (const [i, host] of ['acme.webhook.office.com', 'prod-1.westeurope.logic.azure.com'].entries())
      channel(`nch_${i}`, { type: 'teams', webhookUrl: seal(`nch_${i}`, 'webhookUrl', `https://${host}/hook?sig=canary`) });
    route();
    worker();
    await send();
    await eventually(() => expect(requests).toHaveLength(2));
    for (const { path, body } of requests) {
      expect(path).toBe('/hook?sig=canary');
      expect(body).toMatchObject({ type: 'message', attachments: [{ contentType: 'application/vnd.microsoft.card.adaptive' }] });
    }
  });

  test('Discord gets an embed that mentions nobody', async () => {
    const url = 'https://discord.com/api/webhooks/1/canary-discord';
    channel('nch_discord', { type: 'discord', webhookUrl: seal('nch_discord', 'webhookUrl', url) });
    route();
    worker();
    await send();
    await eventually(() => expect(at('discord.com')).toHaveLength(1));
    expect(at('discord.com')[0]).toMatchObject({
      path: '/api/webhooks/1/canary-discord',
      body: { allowed_mentions: { parse: [] }, embeds: [{ title: 'Deliveries fail' }] },
    });
  });

  test('PagerDuty gets an incident, and its resolution with the recovery; no successes', async () => {
    const routingKey = seal('nch_pd', 'routingKey', 'canary-routing-key');
    channel('nch_pd', { type: 'pagerduty', routingKey, severity: 'critical' });
    route();
    worker();
    await send();
    await eventually(() => expect(requests).toHaveLength(1));
    isUp.shop = true;
    await send();
    await eventually(() => expect(requests).toHaveLength(2));
    expect(requests).toMatchObject([
      {
        host: 'events.pagerduty.com',
        path: '/v2/enqueue',
        body: {
          routing_key: 'canary-routing-key',
          event_action: 'trigger',
          dedup_key: 'rte_a',
          payload: { severity: 'critical', source: 'rte_a', class: 'delivery.failed' },
        },
      },
      { body: { routing_key: 'canary-routing-key', event_action: 'resolve', dedup_key: 'rte_a' } },
    ]);
  });
});

onlyWithPort443('an incident at PagerDuty that is open', () => {
  const pager = (enabled = true): void => {
    const channel: ChannelRecord = { type: 'pagerduty', routingKey: seal('nch_pd', 'routingKey', 'canary-routing-key'), severity: 'error' };
    registry.put('notificationChannel', { v: 1, id: 'nch_pd', org: 'org_a', slug: 'pd', name: 'pd', enabled, channel, generation: 1 });
  };
  const actions = () => requests.map(({ body }) => [body['routing_key'], body['event_action'], body['dedup_key']]);
  const [triggered, resolved] = ['trigger', 'resolve'].map((action) => ['canary-routing-key', action, 'rte_a']);
  const opened = async (): Promise<void> => {
    pager();
    route();
    worker();
    await send();
    await eventually(() => expect(actions()).toEqual([triggered]));
  };

  test.each<[string, () => void]>([
    ['its route is deleted', () => registry.remove('route', 'rte_a')],
    ['its route has no alerts any more', () => registry.put('route', routeRecord())],
    ['its route tells neither failures nor recoveries', () => route({ onFailure: false, onRecovery: false })],
    ['its route has other channels', () => route({ channelIds: ['nch_other'] })],
    ['its channel is deleted', () => registry.remove('notificationChannel', 'nch_pd')],
    ['its channel is disabled', () => pager(false)],
  ])('is resolved when %s', async (_, end) => {
    await opened();
    // Confirmed: what is not is sent again, under the same id.
    await eventually(async () =>
      expect(await redis.client.hexists(`${prefix}{s0}:al:rte_a`, `${hashFields.alertState.incidentOf}nch_pd`)).toBe(1),
    );
    end();
    await eventually(() => expect(actions()).toEqual([triggered, resolved]));
    await eventually(async () => expect(await redis.client.exists(`${prefix}{s0}:incidents`)).toBe(0));
  });

  test('is resolved by the next worker when none was there', async () => {
    await opened();
    await eventually(async () =>
      expect(await redis.client.hexists(`${prefix}{s0}:al:rte_a`, `${hashFields.alertState.incidentOf}nch_pd`)).toBe(1),
    );
    await ends.pop()?.();
    registry.remove('route', 'rte_a');
    registry.remove('notificationChannel', 'nch_pd');
    metrics = new Registry();
    worker();
    registry.flush();
    await eventually(() => expect(actions()).toEqual([triggered, resolved]));
  });

  test('is not resolved by a change that leaves it to its route and channel, nor twice after the recovery', async () => {
    await opened();
    route();
    isUp.shop = true;
    await send();
    await eventually(() => expect(actions()).toEqual([triggered, resolved]));
    await eventually(async () => expect(await redis.client.exists(`${prefix}{s0}:incidents`)).toBe(0));
    registry.remove('route', 'rte_a');
    await eventually(async () => expect(await redis.client.exists(`${prefix}{s0}:ends`)).toBe(0));
    expect(actions()).toEqual([triggered, resolved]);
  });
});

onlyWithPort443('a test', () => {
  test('of PagerDuty opens an incident of its own and resolves it at once', async () => {
    channel('nch_pd', { type: 'pagerduty', routingKey: seal('nch_pd', 'routingKey', 'canary-routing-key'), severity: 'info' });
    worker();
    const blocking = blockingConnection(redis.url, { blockMs: taskBlockSeconds * 1000 });
    ends.push(async () => blocking.disconnect());
    const tasks = new RedisTaskCaller({ redis: redis.client, blocking, prefix, clock: systemClock, logger: silentLogger });
    const task = { org: 'org_a', credential: 'key_a', input: { channelId: 'nch_pd', generation: 1 }, timeoutMs: 20_000 };
    const answer = await eventually(() => tasks.call(channelTestTask, task));
    expect(answer).toMatchObject({
      success: true,
      message: 'The channel took the test alert.',
      detail: { peerAddress: expect.any(String) },
    });
    expect(JSON.stringify(answer)).not.toContain('canary');
    expect(requests.map(({ body }) => [body['event_action'], body['dedup_key']])).toEqual([
      ['trigger', 'test-nch_pd'],
      ['resolve', 'test-nch_pd'],
    ]);
  });

  test('of a channel of another organization is not made', async () => {
    channel('nch_pd', { type: 'pagerduty', routingKey: seal('nch_pd', 'routingKey', 'canary-routing-key'), severity: 'info' });
    worker();
    const blocking = blockingConnection(redis.url, { blockMs: taskBlockSeconds * 1000 });
    ends.push(async () => blocking.disconnect());
    const tasks = new RedisTaskCaller({ redis: redis.client, blocking, prefix, clock: systemClock, logger: silentLogger });
    const task = { org: 'org_b', credential: 'key_a', input: { channelId: 'nch_pd', generation: 1 }, timeoutMs: 20_000 };
    expect(await eventually(() => tasks.call(channelTestTask, task))).toMatchObject({ success: false, error: 'not_ready' });
    expect(requests).toEqual([]);
  });
});

test('channels of type email and the addresses of the route get e-mails', async () => {
  channel('nch_mail', { type: 'email', addresses: ['team@example.com', 'ops@example.com'] });
  route({ emails: ['owner@example.com'] });
  worker();
  await send();
  const mails = await smtp.arrived(2);
  expect(mails.map(({ to }) => to.join()).sort()).toEqual(['owner@example.com', 'team@example.com,ops@example.com']);
  for (const { mail, isEncrypted, user } of mails) {
    expect([isEncrypted, user]).toEqual([true, 'posthorn']);
    expect(mail.subject).toBe('[Posthorn] Deliveries fail: Orders & <b>more</b>');
    expect(mail.html).toContain('Orders &amp; &lt;b&gt;more&lt;/b&gt;');
    expect(mail.text).toContain('A message of route "Orders & <b>more</b>" could not be delivered to "Shop".');
  }
});

onlyWithPort443('an alert', () => {
  test.each<[ChannelRecord['type'], number, Record<string, string>, string]>([
    ['slack', 422, { 'x-posthorn-retry': 'no' }, 'failed'],
    ['teams', 429, { 'x-posthorn-retry': 'No', 'retry-after': '60' }, 'failed'],
    ['discord', 500, { 'x-posthorn-retry': 'no' }, 'failed'],
    ['pagerduty', 503, { 'x-posthorn-retry': 'no' }, 'failed'],
    ['slack', 503, { 'x-posthorn-retry': 'yes' }, 'retrying'],
    ['pagerduty', 429, { 'retry-after': '60' }, 'retrying'],
  ])('that %s answers with %i and %j is %s', async (type, status, headers, state) => {
    refusal = { status, headers };
    const id = `nch_${type}`;
    const urls = { slack: 'https://hooks.slack.com/a', teams: 'https://acme.webhook.office.com/a', discord: 'https://discord.com/a' };
    if (type === 'slack' || type === 'teams' || type === 'discord') channel(id, { type, webhookUrl: seal(id, 'webhookUrl', urls[type]) });
    if (type === 'pagerduty') channel(id, { type, routingKey: seal(id, 'routingKey', 'key'), severity: 'error' });
    route();
    worker();
    await send();
    const alerts = new ChannelAlerts({ redis: redis.client, prefix });
    await eventually(async () => expect(await alerts.newest('org_a', id)).toMatchObject([{ state, attempts: 1, responseStatus: status }]));
    expect(requests).toHaveLength(1);
  });
});

test('no secret of a channel is in a log line, a metric or in Redis in clear, also when its service answers with it or is down', async () => {
  const url = 'https://hooks.slack.com/services/T0/B0/canary-slack';
  channel('nch_slack', { type: 'slack', webhookUrl: seal('nch_slack', 'webhookUrl', url) });
  channel('nch_pd', { type: 'pagerduty', routingKey: seal('nch_pd', 'routingKey', 'canary-key'), severity: 'error' });
  const echo = await startReceiver((response, _, { headers }) => response.writeHead(410).end(JSON.stringify(headers)));
  ends.push(() => echo.close());
  const headersOf = (id: string) => [{ name: 'Authorization', value: seal(id, 'headerValue', 'canary-header') }];
  channel('nch_echo', { type: 'webhook', url: echo.url, headers: headersOf('nch_echo'), signingSecrets: [] });
  channel('nch_away', { type: 'webhook', url: 'https://127.0.0.1:9/', headers: headersOf('nch_away'), signingSecrets: [] });
  route();
  worker();
  await send();
  await echo.arrived(1);
  await eventually(async () => {
    const outcomes = await metrics.getSingleMetricAsString('posthorn_alert_outcomes_total');
    expect(outcomes).toContain('outcome="retry"');
    expect(outcomes).toContain('{channel="webhook",outcome="dead"} 1');
  });
  expect(logLines.join('')).toContain('given up');
  const dumps = await Promise.all((await redis.client.keys('*')).map((key) => redis.client.dumpBuffer(key)));
  const seen = [logLines.join('\n'), await metrics.metrics(), Buffer.concat(dumps.filter((each) => each !== null)).toString('latin1')];
  for (const text of seen) expect(text).not.toContain('canary');
});
