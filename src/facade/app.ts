import type { RequestListener } from 'node:http';
import express, { type ErrorRequestHandler, type Express } from 'express';
import type { Registry } from 'prom-client';
import { createApi } from './api.ts';
import { docsRouter } from './docs.ts';
import { answerError } from './error-response.ts';
import { families } from './families/families.ts';
import { facadeMetrics } from './metrics.ts';
import { nothingHere } from './operation-table.ts';
import { answerRequestId } from './request-id.ts';
import { requestTarget } from './request-target.ts';
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
export function createFacade(options: FacadeOptions): RequestListener {
  const { metrics, version, publicUrl, maxBodyBytes = 1024 * 1024, inForceTimeoutMs = 2000, ...rest } = options;
  const services: FacadeServices = { ...rest, inForceTimeoutMs };
  const operations = families.flatMap((family) => family.operations);
  const api = createApi({ services, operations, metrics: facadeMetrics(metrics), publicUrl, maxBodyBytes });
  const others = otherPages(services, version);
  return (request, response) => {
    if (!api(request, response)) others(request, response);
  };
}

function otherPages({ logger }: FacadeServices, version: string): Express {
  const app = express();
  app.disable('x-powered-by').disable('etag').set('query parser', 'simple').set('case sensitive routing', true);
  app.use((request, response, next) => {
    answerRequestId(request, response);
    next();
  });
  app.use(docsRouter(async () => (await import('./openapi.ts')).openApiDocument(families, version)));
  app.use(() => {
    throw nothingHere();
  });
  // Express knows it by its four parameters.
  const answerErrors: ErrorRequestHandler = (thrown, request, response, _next) => {
    answerError({ logger }, { response, path: requestTarget(request.originalUrl).path }, thrown);
  };
  return app.use(answerErrors);
}
