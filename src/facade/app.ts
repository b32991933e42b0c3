import type { RequestListener } from 'node:http';
import express, { type ErrorRequestHandler, type Express } from 'express';
import type { Registry } from 'prom-client';
import { AddressList } from '../core/address-list.ts';
import type { MailRecipients } from '../data/alerts/mail-recipients.ts';
import { createApi } from './api.ts';
import { docsRouter } from './docs.ts';
import { answerError } from './error-response.ts';
import { families } from './families/families.ts';
import { GuessBrake } from './guess-brake.ts';
import { LargeBodies } from './large-bodies.ts';
import { mailConfirmationRouter } from './mail-confirmation.ts';
import { facadeMetrics } from './metrics.ts';
import { OpenRequests } from './open-requests.ts';
import { nothingHere } from './operation-table.ts';
import { answerRequestId } from './request-id.ts';
import { requestTarget } from './request-target.ts';
import type { FacadeServices } from './services.ts';

export interface FacadeOptions extends Omit<FacadeServices, 'inForceTimeoutMs'> {
  metrics: Registry;
  /** Of the program; shown in the OpenAPI document. */
  version: string;
  /** Where senders reach ingest, such as `https://hooks.example.com`; absent: nobody has said it, and a Host header proves nothing. */
  publicIngestUrl?: string;
  /** CIDRs of the proxies that say in `X-Forwarded-For` who asks. Default: none. */
  trustedProxies?: readonly string[];
  /** The server has a unix socket and no port: who connects names the client as a trusted proxy does. Default: false. */
  isOnUnixSocket?: boolean;
  /** Refused credentials of one client; see `GuessBrake`. Default 60. */
  maxAuthFailuresPerMinute?: number;
  /** Default 1 MiB. */
  maxBodyBytes?: number;
  /** Null: addresses need not be confirmed, and there is no page to do so. */
  mailRecipients: MailRecipients | null;
  /** Default 2000 (API decisions, "Both families"). */
  inForceTimeoutMs?: number;
}

/**
 * The REST API at `/api/…` and `/api/organizations/{orgId}/…`, its description at `/openapi.json` and `/docs`. Every other
 * path is a 404: what else the server has comes before.
 */
export function createFacade(options: FacadeOptions): RequestListener {
  const { metrics, version, publicIngestUrl, maxBodyBytes = 1024 * 1024, inForceTimeoutMs = 2000, mailRecipients, ...others } = options;
  const { trustedProxies = [], isOnUnixSocket = false, maxAuthFailuresPerMinute = 60, ...rest } = others;
  const services: FacadeServices = { ...rest, inForceTimeoutMs };
  const operations = families.flatMap((family) => family.operations);
  const api = createApi({
    services,
    operations,
    metrics: facadeMetrics(metrics),
    publicIngestUrl,
    maxBodyBytes,
    largeBodies: new LargeBodies(),
    openRequests: new OpenRequests(),
    keyBrake: new GuessBrake({ clock: services.clock, maxPerMinute: maxAuthFailuresPerMinute }),
    tokenBrake: new GuessBrake({ clock: services.clock, maxPerMinute: maxAuthFailuresPerMinute }),
    trustedProxies: new AddressList(trustedProxies, { includesUnixSocket: isOnUnixSocket }),
  });
  const pages = otherPages(services, version, mailRecipients);
  return (request, response) => {
    if (!api(request, response)) pages(request, response);
  };
}

function otherPages({ logger, registry, keyring, clock }: FacadeServices, version: string, recipients: MailRecipients | null): Express {
  const app = express();
  app.disable('x-powered-by').disable('etag').set('query parser', 'simple').set('case sensitive routing', true);
  app.use((request, response, next) => {
    answerRequestId(request, response);
    next();
  });
  app.use(docsRouter(async () => (await import('./openapi.ts')).openApiDocument(families, version)));
  if (recipients !== null) app.use(mailConfirmationRouter({ recipients, registry, keyring, clock }));
  app.use(() => {
    throw nothingHere();
  });
  // Express knows it by its four parameters.
  const answerErrors: ErrorRequestHandler = (thrown, request, response, _next) => {
    answerError({ logger }, { response, path: requestTarget(request.originalUrl).path }, thrown);
  };
  return app.use(answerErrors);
}
