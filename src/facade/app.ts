import express, { type ErrorRequestHandler, type Express, type RequestHandler } from 'express';
import type { Registry } from 'prom-client';
import { PosthornError } from '../core/errors.ts';
import { authenticate } from './authentication.ts';
import type { Caller } from './caller.ts';
import { docsRouter } from './docs.ts';
import { sendError, toPosthornError } from './error-response.ts';
import { families } from './families/families.ts';
import { facadeMetrics } from './metrics.ts';
import { openApiDocument } from './openapi.ts';
import { countedAs, limitRate } from './rate-limiting.ts';
import { requestId } from './request-id.ts';
import { requestLog } from './request-log.ts';
import { operationRouter } from './router.ts';
import type { FacadeServices } from './services.ts';

export interface FacadeOptions extends Omit<FacadeServices, 'inForceTimeoutMs'> {
  metrics: Registry;
  /** Of the program; shown in the OpenAPI document. */
  version: string;
  /** Where clients reach the API and ingest, such as `https://hooks.example.com`; absent: what their Host header says. */
  publicUrl?: string;
  /** Default 1 MiB. */
  maxBodyBytes?: number;
  /** Default 2000 (API decisions, "Both families"). */
  inForceTimeoutMs?: number;
}

/**
 * The REST API at `/api/…` and `/api/organizations/{orgId}/…`, its description at `/openapi.json` and `/docs`. Every other
 * path is a 404: what else the server has comes before.
 */
export function createFacade(options: FacadeOptions): Express {
  const { metrics, version, publicUrl, maxBodyBytes = 1024 * 1024, inForceTimeoutMs = 2000, ...rest } = options;
  const services: FacadeServices = { ...rest, inForceTimeoutMs };
  const operations = operationRouter(
    families.flatMap((family) => family.operations),
    { services, publicUrl, maxBodyBytes },
  );

  const app = express();
  app.disable('x-powered-by').disable('etag').set('query parser', 'simple').set('case sensitive routing', true);
  app.use(requestId);
  app.use(docsRouter(openApiDocument(families, version)));
  app.use('/api', requestLog({ ...services, metrics: facadeMetrics(metrics) }), identify(services));
  app.use('/api/organizations/:orgId', requireOwnOrganization, operations);
  app.use('/api', operations);
  app.use(() => {
    throw new PosthornError('NOT_FOUND', 'There is nothing at this path.');
  });
  app.use(answerErrors(services));
  return app;
}

function identify(services: FacadeServices): RequestHandler {
  return async (request, response, next) => {
    const caller = await authenticate(request.headers, services.registry, services.clock);
    response.locals['caller'] = caller;
    response.locals['apiKeyId'] = caller.apiKeyId;
    void services.apiKeyUsage.touch(caller.organization.id, caller.apiKeyId);
    await limitRate(services.rateLimiter, caller, { response, counted: countedAs(request.originalUrl) });
    next();
  };
}

const requireOwnOrganization: RequestHandler = (request, response, next) => {
  const { organization } = response.locals['caller'] as Caller;
  const asked = request.params['orgId'];
  if (asked !== organization.id && asked !== organization.slug) {
    throw new PosthornError('RESOURCE_NOT_FOUND', 'There is no such organization, or this API key does not belong to it.');
  }
  next();
};

/** The last handler: express knows it by its four parameters. */
function answerErrors({ logger }: FacadeServices): ErrorRequestHandler {
  return (thrown, request, response, next) => {
    const error = toPosthornError(thrown);
    if (error.code === 'INTERNAL')
      logger.error({ err: thrown, requestId: response.locals['requestId'], path: request.path }, 'an API request met a defect');
    if (error.code === 'UNAVAILABLE' && error.cause !== undefined)
      logger.warn(
        { err: thrown, requestId: response.locals['requestId'], path: request.path },
        'what an API request needs does not answer',
      );
    if (response.headersSent) return next(thrown);
    sendError(response, error, request.originalUrl);
  };
}
