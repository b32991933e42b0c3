import type { Clock } from '../../core/clock.ts';
import type { Logger } from '../../core/logger.ts';
import { credentialFields } from './caller.ts';
import type { Exchange } from './exchange.ts';
import type { FacadeMetrics } from './metrics.ts';

/** One line and one observation per request. The query is left out: it is the user's data. */
export function logWhenAnswered(
  exchange: Exchange,
  { clock, logger, metrics }: { clock: Clock; logger: Logger; metrics: FacadeMetrics },
): void {
  const startedAtMs = clock.now();
  const { request, response, requestId, path } = exchange;
  response.once('finish', () => {
    const { operationId, caller, sessionId } = exchange;
    const operation = operationId ?? 'none';
    const durationMs = clock.now() - startedAtMs;
    metrics.requestSeconds.observe({ operation, status: String(response.statusCode) }, durationMs / 1000);
    const line = {
      requestId,
      operation,
      ...(caller !== null && credentialFields(caller)),
      ...(sessionId !== null && { sessionId }),
      method: request.method,
      path,
      status: response.statusCode,
      durationMs,
    };
    if (response.statusCode >= 500) logger.warn(line, 'API request failed');
    else logger.debug(line, 'API request');
  });
}
