import { randomUUID } from 'node:crypto';
import { rootCertificates } from 'node:tls';
import { RefusedAddresses } from '../core/egress-policy.ts';
import { mailConfirmationPath } from '../core/mail-confirmation.ts';
import { AlertStates } from '../data/alerts/alert-states.ts';
import { RedisMessageReader } from '../data/history/message-reader.ts';
import { Circuits } from '../data/queue/circuits.ts';
import { doorbellBlockSeconds } from '../data/queue/doorbell.ts';
import { RedisMessageAcceptor } from '../data/queue/message-acceptor.ts';
import { OwnEventLog } from '../data/queue/own-event-log.ts';
import { changeStreamBlockMs } from '../data/registry/change-stream.ts';
import { disableEndpoint } from '../data/webhooks/disable-endpoint.ts';
import { RedisWebhookStore } from '../data/webhooks/redis-webhook-store.ts';
import { WebhookDirectory } from '../data/webhooks/webhook-directory.ts';
import { startDelivery } from '../delivery/start-delivery.ts';
import type { Mailer } from '../delivery/targets/channel/mailer.ts';
import { acceptOwnEvent } from '../ingest/accept-own-event.ts';
import { eventRouting } from '../ingest/routed-again.ts';
import { Notifier } from '../notify/notifier.ts';
import { Sandbox } from '../sandbox/sandbox.ts';
import { agreedShards } from './agreed-shards.ts';
import type { Config } from './config.ts';
import { closeServer } from './listen.ts';
import { lookupThreads } from './lookup-threads.ts';
import { metricsOf, opsHandler } from './ops-server.ts';
import { OwnStore, ownStoreCheck } from './own-store.ts';
import { readPem } from './pem-file.ts';
import { publishedRecords } from './published-records.ts';
import { readableLayout } from './readable-layout.ts';
import { redisOf } from './redis-address.ts';
import { RedisLink } from './redis-link.ts';
import { checkRedisSettings } from './redis-settings.ts';
import { refuseOwn } from './refuse-own.ts';
import { reportProcess } from './report-process.ts';
import { roleKeyring } from './role-keyring.ts';
import { type RoleContext, type RoleDefinition, startOpsServer, trafficHeapGrowthPercent } from './role-process.ts';
import { smtpCredentials } from './smtp-config.ts';
import { version } from './version.ts';
import { watchRedis } from './watch-redis.ts';

const healthIntervalMs = 1000;
/** A new master of Redis has another address. */
const addressesEveryLooks = 30;

/** A worker. It connects to Redis and receivers, never to Kubernetes. */
export const deliveryRole: RoleDefinition = {
  role: 'delivery',
  checks: ['redis', 'worker'],
  heapGrowthPercent: trafficHeapGrowthPercent,
  run: runDelivery,
};

async function runDelivery(context: RoleContext): Promise<void> {
  const { config, logger, clock, registry, readiness, stopping } = context;
  const extraCa: { extraCa?: string } =
    config.egress.caFile === undefined ? {} : { extraCa: readPem(config.egress.caFile, 'CERTIFICATE', 'POSTHORN_EGRESS_CA_FILE') };
  const mailer = await openMailer(config, extraCa.extraCa);
  const prefix = config.redisKeyPrefix;
  const check = ownStoreCheck(config, { claims: false });
  const link = new RedisLink(redisOf(config, logger), { name: 'delivery', prefix, logger, readiness, check });
  void watchRedis(link, context, { settings: false });
  void reportProcess(link, context, 'delivery');
  const opsServer = await startOpsServer(context, opsHandler({ readiness, logger, metrics: metricsOf(registry) }));
  const records = publishedRecords(link, context);
  const webhookStore = new RedisWebhookStore({ redis: link.main, prefix, clock, logger });
  const blocking = link.blocking('webhook-changes', changeStreamBlockMs);
  const webhooks = new WebhookDirectory({ redis: link.main, blocking, prefix, clock, logger });
  // No process runs before one has work. Own events wait for a short time only, so replays do not share theirs.
  const sandbox = new Sandbox({ clock, processes: 1 });
  const replaySandbox = new Sandbox({ clock, processes: 1, maxPayloadBytes: config.maxPayloadBytes });
  try {
    const worker = link.command('worker');
    const payloads = link.command('payloads');
    if (!(await link.waitUntilReachable(clock, stopping))) return;
    const own = new OwnStore(link, context, check);
    await own.untilOwn();
    if (stopping.aborted) return;
    await checkRedisSettings(link.main, logger, config.redisMemoryLimitBytes);
    await readableLayout(link, context);
    records.start();
    webhooks.start();
    const refused = new RefusedAddresses();
    const isFound = await refuseOwn(refused, link.main, config);
    if (!isFound)
      logger.warn({}, 'an address of Redis or of the API server cannot be resolved; the egress policy cannot block it until then');
    const shards = await agreedShards(link, context);
    const shared = { redis: link.main, prefix, shards: () => shards };
    const circuits = new Circuits(shared);
    const acceptor = new RedisMessageAcceptor({ ...shared, clock, memoryLimitBytes: config.redisMemoryLimitBytes });
    const keyring = roleKeyring(config, context, () => {
      records.flush();
      webhooks.flush();
    });
    const notifier = new Notifier({
      states: new AlertStates({ redis: link.main, prefix }),
      acceptor,
      acceptOwn: (event, signal) => acceptOwnEvent({ registry: records, acceptor, sandbox, logger }, event, signal),
      registry: records,
      messages: new RedisMessageReader(shared),
      circuits,
      shards,
      reader: randomUUID(),
      clock,
      logger,
    });
    const delivery = startDelivery({
      redis: worker,
      payloads,
      openBlocking: () => link.blocking('doorbell', doorbellBlockSeconds * 1000),
      shards,
      eventReplays: { routing: eventRouting({ registry: records, sandbox: replaySandbox, logger }), acceptor },
      onAlerts: (shard) => notifier.wake(shard),
      ...(mailer !== null && { mailer }),
      mailsPerDay: config.mailsPerDay,
      mailDomains: config.mailDomains,
      ...(config.publicUrl !== undefined && { publicUrl: config.publicUrl }),
      ...(config.requiresMailConfirmation && { mailConfirmationUrl: `${config.publicUrl}${mailConfirmationPath}` }),
      prefix,
      registry: records,
      keyring,
      clock,
      logger,
      metrics: registry,
      version,
      pool: config.deliveryPool,
      concurrency: config.deliveryConcurrency,
      attemptDetail: config.attemptDetail,
      lookupThreads: lookupThreads(),
      maxPayloadBytes: config.maxPayloadBytes,
      memoryLimitBytes: config.redisMemoryLimitBytes,
      egress: { ...config.egress, refused },
      warehouse: config.warehouse,
      webhooks: {
        directory: webhooks,
        disableEndpoint: async (endpoint) => {
          const disabling = await disableEndpoint(webhookStore, endpoint);
          const { org: organization, id, disabledReason } = endpoint;
          if (disabling.isDone) logger.warn({ organization, endpoint: id, reason: disabledReason }, 'a webhook endpoint was disabled');
          return disabling;
        },
        circuits,
        ownEvents: new OwnEventLog({ redis: link.main, prefix }),
        disableAfterHours: config.webhooks.disableAfterHours,
        retries: { delaysMs: config.webhooks.retryDelaysMs },
        allowsInsecureUrls: config.webhooks.allowsInsecureUrls,
      },
      ...extraCa,
      ...(config.egress.proxyUrl !== undefined && { proxyUrl: config.egress.proxyUrl }),
    });
    for (let looks = 1; !stopping.aborted; looks++) {
      // Work under way is the other one's: its workers take it up.
      if (own.refusal !== null) throw own.refusal;
      if (looks % addressesEveryLooks === 0) void refuseOwn(refused, link.main, config);
      readiness.set('worker', delivery.isHealthy() ? { ok: true } : { ok: false, detail: 'no heartbeat for 15 s' });
      await clock.sleep(healthIntervalMs, stopping);
    }
    await delivery.stop(config.drainMs);
    await notifier.stop();
  } finally {
    mailer?.close();
    sandbox.close();
    replaySandbox.close();
    await records.stop();
    await webhooks.stop();
    await closeServer(opsServer, 1000);
    link.close();
  }
}

/** Null: no SMTP server is configured. */
async function openMailer({ smtp }: Config, extraCa: string | undefined): Promise<Mailer | null> {
  if (smtp === undefined) return null;
  const { login, ...rest } = smtp;
  const credentials = login === null ? null : smtpCredentials(login);
  const { Mailer } = await import('../delivery/targets/channel/mailer.ts');
  return new Mailer({ ...rest, credentials, ...(extraCa !== undefined && { ca: [...rootCertificates, extraCa] }) });
}
