import type { RequestHandler } from 'express';
import type { Clock } from '../core/clock.ts';
import type { Logger } from '../core/logger.ts';
import type { FacadeMetrics } from './metrics.ts';

/** One line and one observation per request. The query is left out: it is the user's data. */
export function requestLog({ clock, logger, metrics }: { clock: Clock; logger: Logger; metrics: FacadeMetrics }): RequestHandler {
  return (request, response, next) => {
    const startedAtMs = clock.now();
    response.once('finish', () => {
      const { requestId, operationId = 'none', apiKeyId } = response.locals;
      const durationMs = clock.now() - startedAtMs;
      metrics.requestSeconds.observe({ operation: operationId, status: String(response.statusCode) }, durationMs / 1000);
      const line = {
        requestId,
        operation: operationId,
        apiKeyId,
        method: request.method,
        path: request.baseUrl + request.path,
        status: response.statusCode,
        durationMs,
      };
      if (response.statusCode >= 500) logger.warn(line, 'API request failed');
      else logger.debug(line, 'API request');
    });
    next();
  };
}
