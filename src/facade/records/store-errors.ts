import { isPosthornError, PosthornError } from '../../core/errors.ts';
import type { ServedKind } from '../http/services.ts';
import { fieldManaged } from './owned-spec.ts';

/** What the store refused, in words for an API client: which field and why, without the store's own phrases and names. */
export function forClients(error: unknown, kind: ServedKind): unknown {
  if (!isPosthornError(error)) return error;
  // It is not the caller who lacks the right.
  if (error.code === 'FORBIDDEN' && /: User "[^"]*" cannot /.test(error.message))
    return new PosthornError(
      'INTERNAL',
      'The API lacks a permission in the cluster that this needs; find it in the logs by the request id.',
      {
        cause: error,
      },
    );
  if (isQuotaUsedUp(error))
    return new PosthornError('FORBIDDEN', "A quota of the organization's namespace in the cluster is used up.", { cause: error });
  if (error.details === undefined) return error;
  if (error.code === 'FIELD_MANAGED') return fieldManaged(error.details);
  if (error.code !== 'VALIDATION_FAILED') return error;
  const complaints = Object.entries(error.details).map(([path, texts]): [string, string[]] => {
    const field = path.replace(/^spec\.?/, '').replaceAll(/\.(\d+)(?=\.|$)/g, '[$1]');
    return [reworded(field, kind), texts.map((text) => reworded(text, kind))];
  });
  const text = complaints.map(([field, texts]) => `${field} ${texts.join(', ')}`.trim());
  return new PosthornError('VALIDATION_FAILED', `${text.join('; ')}.`, { details: Object.fromEntries(complaints), cause: error });
}

/** A ResourceQuota of the namespace allows no more of the kind. */
export function isQuotaUsedUp(error: unknown): boolean {
  return isPosthornError(error, 'FORBIDDEN') && error.message.includes('exceeded quota');
}

/** Compiles what was sent; what is wrong with it is told as `forClients` does. */
export function inApiWords<T>(kind: ServedKind, compile: () => T): T {
  try {
    return compile();
  } catch (error) {
    throw forClients(error, kind);
  }
}

/** Fields that the API calls otherwise than the custom resource; what contains another one first. */
const apiNames: Partial<Record<ServedKind, readonly (readonly [spec: string | RegExp, api: string])[]>> = {
  Destination: [
    ['signingSecretRef', 'signingSecret'],
    ['SecretRef', ''],
    ['initialDelayMs', 'initialDelay'],
    ['maxDelayMs', 'maxDelay'],
    ['http.auth.type', 'authType'],
    ['http.auth', 'authConfig'],
    [/^http\./g, ''],
    ['warehouse.fieldMapping', 'fieldMapping'],
    ['warehouse.identity', 'config.identity'],
    [/^(?:warehouse|s3|r2|gcs|azureBlob)\b/g, 'config'],
  ],
  Source: [
    ['ipFilter.mode', 'ipFilterMode'],
    ['ipFilter.allowlist', 'ipAllowlist'],
    ['ipFilter.denylist', 'ipDenylist'],
    ['dedup.header', 'dedupHeader'],
    ['signingSecretRef', 'signingSecret'],
  ],
  Route: [
    ['failover.destinationRefs', 'failoverDestinationIds'],
    ['destinationRefs', 'destinationIds'],
    ['filter.conditions', 'filterConditions'],
    ['conditions[', 'filterConditions['],
  ],
  HttpCronJob: [
    ['schedule', 'cronExpression'],
    ['timeZone', 'timezone'],
  ],
  Replay: [
    ['filter.destinationRef', 'filter.destinationId'],
    ['destinationRef', 'toDestinationId'],
    ['filter.sourceRef', 'filter.sourceId'],
    ['filter.routeRef', 'filter.routeId'],
    ['filter.statuses', 'filter.status'],
    ['filter.errorTypes', 'filter.errorType'],
    ['filter.responseStatuses', 'filter.responseStatus'],
  ],
};

function reworded(text: string, kind: ServedKind): string {
  return (apiNames[kind] ?? []).reduce((worded, [spec, api]) => worded.replaceAll(spec, api), text);
}
