import { isForwardedHeader } from '../../core/forwarded-headers.ts';
import { headersIn } from '../../core/header-template.ts';
import { ownProvider } from '../../core/providers/providers.ts';
import type { Cause } from '../../resources/causes.ts';
import { isRecord } from '../../resources/field-tree.ts';
import { type Kind, kindPath, type SpecOf } from '../../resources/kinds.ts';

/** Whether a field of the spec is written, rather than a default. */
type IsWritten = (field: string) => boolean;

/**
 * Returns the fields that the API server accepts and that have no effect in the object. `spec`: as it was admitted, with its defaults; `written`: the object as
 * it is written. What depends on the time, on other objects or on the installation is not checked.
 */
export function withoutEffect(kind: Kind, spec: unknown, written: unknown): Cause[] {
  const isWritten: IsWritten = (field) => valueAt(written, `spec.${field}`.split('.')) !== undefined;
  const inSpec = causesOf(kind, spec, isWritten).map(({ field, message }) => ({ field: `spec.${field}`, message }));
  if (kindPath(kind).namespaced || valueAt(written, ['metadata', 'namespace']) === undefined) return inSpec;
  return [{ field: 'metadata.namespace', message: `objects of the kind ${kind} are in no namespace` }, ...inSpec];
}

function causesOf(kind: Kind, spec: unknown, isWritten: IsWritten): Cause[] {
  // The kind determines the type of the spec.
  switch (kind) {
    case 'Source':
      return ofSource(spec as SpecOf<'Source'>, isWritten);
    case 'Route':
      return ofRoute(spec as SpecOf<'Route'>, isWritten);
    case 'Destination':
      return ofDestination(spec as SpecOf<'Destination'>, isWritten);
    case 'WebhookEndpoint':
      return ofEndpoint(spec as SpecOf<'WebhookEndpoint'>);
    case 'Replay':
      return ofReplay(spec as SpecOf<'Replay'>);
    default:
      return [];
  }
}

function ofSource({ provider, signingSecretRef, ipFilter, dedup }: SpecOf<'Source'>, isWritten: IsWritten): Cause[] {
  if (provider === ownProvider) {
    const fields = ['dedup', 'ipFilter', 'rateLimitPerMinute', 'allowedMethods', 'rejectInvalidSignatures'];
    return causes(fields.filter(isWritten), `a source with provider ${ownProvider} takes no requests`);
  }
  const found: Cause[] = [];
  if (signingSecretRef === undefined && isWritten('rejectInvalidSignatures'))
    found.push({ field: 'rejectInvalidSignatures', message: 'without signingSecretRef signatures are not checked' });
  const mode = ipFilter?.mode ?? 'none';
  const lists = { allowlist: ['allowlist', 'both'], denylist: ['denylist', 'both'] };
  for (const [list, modes] of Object.entries(lists))
    if (isWritten(`ipFilter.${list}`) && !modes.includes(mode))
      found.push({ field: `ipFilter.${list}`, message: `the list does not count with mode ${mode}` });
  if (dedup?.strategy === 'none')
    found.push(...causes(['dedup.header', 'dedup.windowHours'].filter(isWritten), 'with strategy none there are no duplicates'));
  if (dedup?.strategy === 'payload_hash' && isWritten('dedup.header'))
    found.push({ field: 'dedup.header', message: 'with strategy payload_hash the body is compared' });
  return found;
}

function ofRoute({ failover, notifications }: SpecOf<'Route'>, isWritten: IsWritten): Cause[] {
  const found: Cause[] = [];
  if (failover?.destinationRefs.length === 0)
    found.push(...causes(['failover.afterAttempts'].filter(isWritten), 'there are no failover destinations'));
  if (notifications === undefined) return found;
  const { onFailure, onSuccess, onRecovery } = notifications;
  const fields = ['notifications.failureThreshold', ...(onSuccess ? [] : ['notifications.channelRefs', 'notifications.emails'])];
  if (!onFailure && !onRecovery)
    found.push(
      ...causes(fields.filter(isWritten), onSuccess ? 'no failures are counted' : 'onFailure, onSuccess and onRecovery are all false'),
    );
  return found;
}

function ofDestination({ type, http, throttle, warehouse, retryPolicy }: SpecOf<'Destination'>, isWritten: IsWritten): Cause[] {
  const mode = throttle?.mode ?? 'off';
  const limits = {
    rateLimit: ['rate'],
    rateUnit: ['rate'],
    strict: ['rate'],
    maxConcurrency: ['concurrency'],
    queueLimit: ['rate', 'concurrency'],
  };
  const idle = Object.entries(limits).flatMap(([field, modes]) => (modes.includes(mode) ? [] : [`throttle.${field}`]));
  const found = causes(idle.filter(isWritten), `the field is not used with mode ${mode}`);
  if (retryPolicy?.delaysMs !== undefined) {
    const others = ['maxRetries', 'initialDelayMs', 'maxDelayMs', 'backoffMultiplier'].map((field) => `retryPolicy.${field}`);
    found.push(...causes(others.filter(isWritten), 'delaysMs is used instead'));
  }
  if (warehouse?.identity === 'platform') {
    const keys = ['s3.accessKeyId', 's3.secretAccessKeySecretRef', 'gcs.serviceAccountKeySecretRef', 'azureBlob.accountKeySecretRef'];
    found.push(...causes(keys.filter(isWritten), 'with warehouse.identity platform no keys are used'));
  }
  return type === 'http' && http !== undefined ? [...found, ...ofHttp(http)] : found;
}

function ofHttp(http: NonNullable<SpecOf<'Destination'>['http']>): Cause[] {
  const { auth, headers = [], headerTemplates = [], forwardHeaders = [], signatureScheme, signingSecretRef } = http;
  const found: Cause[] = [];
  if (signatureScheme !== undefined && signingSecretRef === undefined)
    found.push({ field: 'http.signatureScheme', message: 'without signingSecretRef nothing is signed' });
  const own = new Set([...headers, ...headerTemplates].map(({ name }) => name.toLowerCase()));
  if (auth?.headerName !== undefined) own.add(auth.headerName.toLowerCase());
  for (const [index, name] of forwardHeaders.entries()) {
    const field = `http.forwardHeaders[${index}]`;
    if (!isForwardedHeader(name))
      found.push({ field, message: `the header ${name} of a sender is not kept with its event, so it is never sent on` });
    else if (own.has(name.toLowerCase())) found.push({ field, message: `the header ${name} of the destination is sent instead` });
  }
  for (const [index, { template }] of headerTemplates.entries())
    for (const name of new Set(headersIn(template).filter((each) => !isForwardedHeader(each))))
      found.push({
        field: `http.headerTemplates[${index}].template`,
        message: `the header ${name} of a sender is not kept with its event, so it has no value`,
      });
  return found;
}

function ofEndpoint({ rateLimitStrict, rateLimitPerSecond }: SpecOf<'WebhookEndpoint'>): Cause[] {
  if (rateLimitStrict !== true || rateLimitPerSecond > 0) return [];
  return [{ field: 'rateLimitStrict', message: 'without rateLimitPerSecond there is no limit' }];
}

function ofReplay({ dryRun, stopAfterFailurePercent }: SpecOf<'Replay'>): Cause[] {
  if (!dryRun || stopAfterFailurePercent === undefined) return [];
  return [{ field: 'stopAfterFailurePercent', message: 'a dry run sends nothing that could fail' }];
}

function causes(fields: readonly string[], message: string): Cause[] {
  return fields.map((field) => ({ field, message }));
}

function valueAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((inner, name) => (isRecord(inner) ? inner[name] : undefined) ?? undefined, value);
}
