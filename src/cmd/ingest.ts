import { PosthornError } from '../core/errors.ts';
import { requestIdFor } from '../core/request-id.ts';
import { RedisIntake } from '../data/intake/intake.ts';
import { QuotaSteps } from '../data/intake/quota-steps.ts';
import { SignatureFailureLog } from '../data/intake/signature-failure-log.ts';
import { RedisMessageAcceptor } from '../data/queue/message-acceptor.ts';
import { answerError } from '../ingest/answer.ts';
import { createIngestHandler } from '../ingest/handler.ts';
import { isIngestTarget } from '../ingest/path.ts';
import { Sandbox } from '../sandbox/sandbox.ts';
import { agreedShards } from './agreed-shards.ts';
import { type ApiProxy, apiProxy } from './api-proxy.ts';
import { createHttpServer } from './http-server.ts';
import { aborted, boundAddress, closeServer, drainServer, listen } from './listen.ts';
import { metricsOf, opsHandler } from './ops-server.ts';
import { answerForeign, OwnStore, ownStoreCheck } from './own-store.ts';
import { publishedRecords } from './published-records.ts';
import { readableLayout } from './readable-layout.ts';
import { redisOf } from './redis-address.ts';
import { RedisLink } from './redis-link.ts';
import { reportProcess } from './report-process.ts';
import { roleKeyring } from './role-keyring.ts';
import { type RoleContext, type RoleDefinition, startOpsServer, trafficHeapGrowthPercent } from './role-process.ts';
import { untilPublished } from './until-published.ts';
import { publicHealth } from './upstream-health.ts';
import { watchRedis } from './watch-redis.ts';

/** Takes events, and needs nothing but Redis for it: no request of the API delays it, and it has no way to Kubernetes. */
export const ingestRole: RoleDefinition = {
  role: 'ingest',
  checks: ['redis', 'installation', 'configuration'],
  heapGrowthPercent: trafficHeapGrowthPercent,
  run: runIngest,
};

async function runIngest(context: RoleContext): Promise<void> {
  const { config, logger, clock, registry, readiness, stopping } = context;
  const ops = opsHandler({ readiness, logger, metrics: metricsOf(registry) });
  const health = publicHealth(context);
  const prefix = config.redisKeyPrefix;
  const check = ownStoreCheck(config, { claims: false });
  const link = new RedisLink(redisOf(config, logger), { name: 'ingest', prefix, logger, readiness, check });
  void watchRedis(link, context, { settings: false });
  void reportProcess(link, context, 'ingest');
  const own = new OwnStore(link, context, check);
  const records = publishedRecords(link, context);
  const sandbox = new Sandbox({ clock, processes: 2, maxPayloadBytes: config.maxPayloadBytes });
  let shards = config.shards;
  const storing = { redis: link.command('events'), prefix, clock };
  const quotaSteps = new QuotaSteps({ ...storing, registry: records, shards: () => shards, logger });
  const signatureFailures = new SignatureFailureLog({ ...storing, logger });
  const ingest = createIngestHandler({
    sandbox,
    signatureFailures,
    registry: records,
    acceptor: new RedisMessageAcceptor({
      ...storing,
      payloads: link.command('payloads'),
      shards: () => shards,
      memoryLimitBytes: config.redisMemoryLimitBytes,
    }),
    intake: new RedisIntake({ ...storing, quotaSteps }),
    keyring: roleKeyring(config, context, () => records.flush()),
    clock,
    logger,
    metrics: registry,
    publicUrl: config.publicIngestUrl,
    trustedProxies: config.trustedProxies,
    maxPayloadBytes: config.maxPayloadBytes,
  });
  const others =
    config.apiSocket === undefined ? nothingElse : apiProxy(config.apiSocket, { logger, trustedProxies: config.trustedProxies });
  const server = createHttpServer(
    (request, response) => {
      if (!own.isOwn && isIngestTarget(request.url ?? '')) return answerForeign(request, response);
      if (!ingest(request, response) && !health(request, response)) others.listener(request, response, boundAddress(server));
    },
    { trustedProxies: config.trustedProxies, basePath: config.basePath, setsAnswerHeaders: isIngestTarget, takesHalfClosed: true },
  );
  await listen(server, { port: config.port, host: config.host, setting: 'POSTHORN_PORT' });
  const opsServer = await startOpsServer(context, ops);
  logger.info({ port: config.port }, 'listening');
  if (await link.waitUntilReachable(clock, stopping)) {
    await own.untilOwn();
    await readableLayout(link, context);
    shards = await agreedShards(link, context);
  }
  records.start();
  await untilPublished(records, context);
  await aborted(stopping);
  await drainServer(server, config.drainMs);
  others.close();
  await signatureFailures.close();
  await Promise.all([records.stop(), closeServer(opsServer, 1000)]);
  sandbox.close();
  link.close();
}

const nothingElse: ApiProxy = {
  listener: (request, response) => {
    const error = new PosthornError('NOT_FOUND', 'There is nothing at this path: this server accepts events at /ingest/.');
    answerError(response, requestIdFor(request.headers['x-request-id']), error);
  },
  close: () => undefined,
};
