import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Registry } from 'prom-client';
import type { Logger } from '../core/logger.ts';
import { sharedCall } from '../core/shared-call.ts';
import { createHttpServer } from './http-server.ts';
import type { Readiness } from './readiness.ts';

export interface OpsOptions {
  readiness: Readiness;
  logger: Logger;
  /** The text of `/metrics`. */
  metrics(): Promise<{ contentType: string; text: string }>;
}

/** Handles requests for its own paths, such as `/livez`, `/readyz` and `/metrics`. Returns false for any other path. */
export type OpsHandler = (request: IncomingMessage, response: ServerResponse) => boolean;

export function opsHandler(options: OpsOptions): OpsHandler {
  const metrics = sharedCall(options.metrics);
  const health = healthHandler(options.readiness);
  return (request, response) => {
    if (health(request, response)) return true;
    if (pathOf(request) !== '/metrics') return false;
    void answerMetrics({ ...options, metrics }, response);
    return true;
  };
}

/** Answers `/livez` and `/readyz`, which any port may show. */
export function healthHandler(readiness: Readiness): OpsHandler {
  return (request, response) => {
    if (answerLiveness(request, response)) return true;
    if (pathOf(request) !== '/readyz') return false;
    answer(response, readiness.ready ? 200 : 503, 'application/json', `${JSON.stringify(readiness.report())}\n`);
    return true;
  };
}

/** Answers `/livez`. */
export const answerLiveness: OpsHandler = (request, response) => {
  if (pathOf(request) !== '/livez') return false;
  answer(response, 200, 'application/json', '{"status":"alive"}\n');
  return true;
};

/** Path of a request, without its query. */
export function pathOf({ url = '/' }: IncomingMessage): string {
  return url.split('?', 1)[0] ?? '/';
}

async function answerMetrics({ metrics, logger }: OpsOptions, response: ServerResponse): Promise<void> {
  try {
    const { contentType, text } = await metrics();
    answer(response, 200, contentType, text);
  } catch (error) {
    logger.error({ err: error }, 'metrics could not be collected');
    answer(response, 500, 'text/plain; charset=utf-8', 'metrics could not be collected\n');
  }
}

function answer(response: ServerResponse, status: number, contentType: string, text: string): void {
  response.writeHead(status, { 'content-type': contentType, 'content-length': Buffer.byteLength(text) });
  response.end(text);
}

/** Metrics of this process alone. */
export function metricsOf(registry: Registry): OpsOptions['metrics'] {
  return async () => ({ contentType: registry.contentType, text: await registry.metrics() });
}

/** A server of nothing else, for the roles without an API of their own. */
export function createOpsServer(handler: OpsHandler): Server {
  return createHttpServer((request, response) => {
    if (!handler(request, response)) answer(response, 404, 'application/json', '{"error":"Not Found"}\n');
  });
}
