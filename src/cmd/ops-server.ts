import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Registry } from 'prom-client';
import type { Logger } from '../core/logger.ts';
import { createServer } from '../core/node-http.ts';
import type { Readiness } from './readiness.ts';

export interface OpsOptions {
  readiness: Readiness;
  logger: Logger;
  /** The text of `/metrics`. */
  metrics(): Promise<{ contentType: string; text: string }>;
}

/** Answers `/livez`, `/readyz` and `/metrics`; false when the path is another. */
export type OpsHandler = (request: IncomingMessage, response: ServerResponse) => boolean;

export function opsHandler(options: OpsOptions): OpsHandler {
  return (request, response) => {
    const path = (request.url ?? '/').split('?', 1)[0];
    switch (path) {
      case '/livez':
        answer(response, 200, 'application/json', '{"status":"alive"}\n');
        return true;
      case '/readyz':
        answer(response, options.readiness.ready ? 200 : 503, 'application/json', `${JSON.stringify(options.readiness.report())}\n`);
        return true;
      case '/metrics':
        void answerMetrics(options, response);
        return true;
      default:
        return false;
    }
  };
}

async function answerMetrics({ metrics, logger }: OpsOptions, response: ServerResponse): Promise<void> {
  try {
    const { contentType, text } = await metrics();
    answer(response, 200, contentType, text);
  } catch (error) {
    logger.error({ err: error }, 'the metrics cannot be read');
    answer(response, 500, 'text/plain; charset=utf-8', 'the metrics cannot be read\n');
  }
}

function answer(response: ServerResponse, status: number, contentType: string, text: string): void {
  response.writeHead(status, { 'content-type': contentType, 'content-length': Buffer.byteLength(text), 'cache-control': 'no-store' });
  response.end(text);
}

/** Metrics of this process alone. */
export function metricsOf(registry: Registry): OpsOptions['metrics'] {
  return async () => ({ contentType: registry.contentType, text: await registry.metrics() });
}

/** A server of nothing else, for the roles without an API of their own. */
export function createOpsServer(handler: OpsHandler): Server {
  const server = createServer((request, response) => {
    if (!handler(request, response)) answer(response, 404, 'application/json', '{"error":"Not Found"}\n');
  });
  server.requestTimeout = 10_000;
  server.headersTimeout = 10_000;
  return server;
}
