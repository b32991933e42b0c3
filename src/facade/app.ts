import type { RequestListener } from 'node:http';
import express, { type ErrorRequestHandler, type Express } from 'express';
import type { Registry } from 'prom-client';
import { AddressList } from '../core/address-list.ts';
import type { MailRecipients } from '../data/alerts/mail-recipients.ts';
import type { LinkedPayloads } from '../data/history/linked-payloads.ts';
import { type ConsoleOptions, createConsole } from './console/console.ts';
import { families } from './families/families.ts';
import { sessions } from './families/sessions/sessions.ts';
import { createApi } from './http/api-handler.ts';
import { answerError } from './http/error-response.ts';
import { GuessLimiter } from './http/guess-limiter.ts';
import { LargeBodies } from './http/large-bodies.ts';
import { LoopbackAccess, type LoopbackOptions } from './http/loopback-access.ts';
import { mailConfirmationRouter } from './http/mail-confirmation-router.ts';
import { facadeMetrics } from './http/metrics.ts';
import { OpenRequests } from './http/open-requests.ts';
import type { Family } from './http/operation.ts';
import { nothingHere } from './http/operation-table.ts';
import { payloadLinkHandler } from './http/payload-link-handler.ts';
import { answerRequestId } from './http/request-id-header.ts';
import { RequestMemory } from './http/request-memory.ts';
import { requestTarget } from './http/request-target.ts';
import type { FacadeServices } from './http/services.ts';
import { docsRouter } from './openapi/docs.ts';

export interface FacadeOptions extends Omit<FacadeServices, 'inForceTimeoutMs'> {
  metrics: Registry;
  /** Version of the program; shown in the OpenAPI document. */
  version: string;
  /** Where senders reach ingest, such as `https://hooks.example.com`; absent: it is not configured, and a Host header proves nothing. */
  publicIngestUrl?: string;
  /** CIDRs of the proxies whose `X-Forwarded-For` is trusted. Default: none. */
  trustedProxies?: readonly string[];
  /** The server has a unix socket and no port: who connects names the client as a trusted proxy does. Default: false. */
  isOnUnixSocket?: boolean;
  /** Null: every request needs credentials. Default: null. */
  loopback?: LoopbackOptions | null;
  /** Enables browser login; cookies are then credentials. False: login operations do not exist and cookies are ignored. Default: true. */
  takesSessions?: boolean;
  /** Refused credentials of one client; see `GuessLimiter`. Default 60. */
  maxAuthFailuresPerMinute?: number;
  /** As `/posthorn`: below which pages name what they need. Default: empty. */
  basePath?: string;
  /** Null: there is no console. Default: null. */
  console?: Pick<ConsoleOptions, 'directory' | 'theme' | 'views'> | null;
  /** Default 1 MiB. */
  maxBodyBytes?: number;
  /** Target of the links of thin deliveries. */
  linkedPayloads: LinkedPayloads;
  /** Null: addresses need not be confirmed, and there is no page to do so. */
  mailRecipients: MailRecipients | null;
  /** How long the answer to a write waits until the object is programmed; then it has a `Warning` header. Default 2000. */
  inForceTimeoutMs?: number;
}

/**
 * The REST API at `/api/…` and `/api/organizations/{orgId}/…`, its description at `/openapi.json` and `/docs`, and the
 * console at `/console`. Every other path is a 404: what else the server has comes before.
 */
export function createFacade(options: FacadeOptions): RequestListener {
  const {
    metrics,
    version,
    publicIngestUrl,
    maxBodyBytes = 1024 * 1024,
    inForceTimeoutMs = 2000,
    mailRecipients,
    linkedPayloads,
    ...others
  } = options;
  const {
    trustedProxies = [],
    isOnUnixSocket = false,
    loopback = null,
    takesSessions = true,
    maxAuthFailuresPerMinute = 60,
    basePath = '',
    console = null,
    ...rest
  } = others;
  const services: FacadeServices = { ...rest, inForceTimeoutMs };
  const served = takesSessions ? families : families.filter((family) => family !== sessions);
  const operations = served.flatMap((family) => family.operations);
  const requestMetrics = facadeMetrics(metrics);
  const memory = new RequestMemory(services.clock);
  const proxies = new AddressList(trustedProxies, { includesUnixSocket: isOnUnixSocket });
  const payloads = payloadLinkHandler({ services, payloads: linkedPayloads, metrics: requestMetrics, memory, trustedProxies: proxies });
  const api = createApi({
    services,
    operations,
    metrics: requestMetrics,
    publicIngestUrl,
    basePath,
    maxBodyBytes,
    largeBodies: new LargeBodies(),
    openRequests: new OpenRequests(),
    memory,
    keyGuesses: new GuessLimiter({ clock: services.clock, maxPerMinute: maxAuthFailuresPerMinute }),
    tokenGuesses: new GuessLimiter({ clock: services.clock, maxPerMinute: maxAuthFailuresPerMinute }),
    loopback: loopback === null ? null : new LoopbackAccess(loopback),
    takesSessions,
    trustedProxies: proxies,
  });
  const consolePages = console === null ? nothing : createConsole({ ...console, basePath, version }, services);
  const pages = otherPages(services, { served, version, basePath, recipients: mailRecipients });
  return (request, response) => {
    if (!payloads(request, response) && !api(request, response) && !consolePages(request, response)) pages(request, response);
  };
}

const nothing = (): boolean => false;

/** Express, for what is no operation of the API (docs/decisions/0015-express.md). */
function otherPages(
  { logger, registry, keyring, clock }: FacadeServices,
  {
    served,
    version,
    basePath,
    recipients,
  }: { served: readonly Family[]; version: string; basePath: string; recipients: MailRecipients | null },
): Express {
  const app = express();
  app.disable('x-powered-by').disable('etag').set('query parser', 'simple').set('case sensitive routing', true);
  app.use((request, response, next) => {
    answerRequestId(request, response);
    next();
  });
  app.use(docsRouter(async () => (await import('./openapi/openapi.ts')).openApiDocument(served, version, basePath), basePath));
  if (recipients !== null) app.use(mailConfirmationRouter({ recipients, registry, keyring, clock }));
  app.use(() => {
    throw nothingHere();
  });
  // Express requires the four parameters.
  const answerErrors: ErrorRequestHandler = (thrown, request, response, _next) => {
    answerError({ logger }, { response, path: requestTarget(request.originalUrl).path }, thrown);
  };
  return app.use(answerErrors);
}
