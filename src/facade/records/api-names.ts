import type { ServedKind } from '../http/services.ts';

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
    [/\bfilter\.destinationRefs?\b/g, 'filter.destinationId'],
    ['destinationRef', 'toDestinationId'],
    [/\bfilter\.sourceRefs?\b/g, 'filter.sourceId'],
    [/\bfilter\.routeRefs?\b/g, 'filter.routeId'],
    [/\bfilter\.(applicationId|endpointId|eventType)s\b/g, 'filter.$1'],
    ['filter.statuses', 'filter.status'],
    ['filter.errorTypes', 'filter.errorType'],
    ['filter.responseStatuses', 'filter.responseStatus'],
  ],
};

/** A path of a spec or a text about one in the words of the API. */
export function reworded(text: string, kind: ServedKind): string {
  return (apiNames[kind] ?? []).reduce((worded, [spec, api]) => worded.replaceAll(spec, api), text);
}

/** The same for paths alone: their words are too common to be replaced in texts. */
const fieldNames: Partial<Record<ServedKind, readonly (readonly [spec: RegExp, api: string])[]>> = {
  Source: [
    [/^dedup\.strategy/, 'dedupStrategy'],
    [/^dedup\.windowHours/, 'dedupWindowHours'],
    [/^handshake\.type/, 'handshake'],
    [/^handshake\.verifyTokenSecretRef/, 'verifyToken'],
  ],
  Route: [
    [/^sourceRef/, 'sourceId'],
    [/^filterRef/, 'filterId'],
    [/^transformRef/, 'transformId'],
    [/^schemaRef/, 'schemaId'],
    [/^filter\.logic/, 'filterLogic'],
    [/^failover\.afterAttempts/, 'failoverAfterAttempts'],
    [/^circuit\.failureThreshold/, 'circuitFailureThreshold'],
    [/^circuit\.cooldownSeconds/, 'circuitCooldownSeconds'],
    [/^circuit\.probeSuccessThreshold/, 'circuitProbeSuccessThreshold'],
    [/^notifications\.on(?=Failure|Success|Recovery)/, 'notifyOn'],
    [/^notifications\.emails/, 'notifyEmails'],
    [/^notifications\.channelRefs/, 'notificationChannelIds'],
    [/^notifications\.failureThreshold/, 'failureThreshold'],
  ],
  HttpCronJob: [[/^enabled/, 'isActive']],
  NotificationChannel: [
    [/^(?:slack|teams|discord|pagerduty|email|webhook)(?=\.|$)/, 'config'],
    [/SecretRef/, ''],
  ],
  WebhookEventType: [
    [/^enabled/, 'isEnabled'],
    [/^deprecated(?=\.|$)/, 'isDeprecated'],
  ],
};

/** The field of a record, such as `retryPolicy.maxDelay`, that a field of the spec, such as `spec.retryPolicy.maxDelayMs`, is shown in. Items of lists are not distinguished. */
export function recordField(kind: ServedKind, specPath: string): string {
  const field = specPath.replace(/^spec\.?/, '').replace(/\[.*$/s, '');
  const named = (fieldNames[kind] ?? []).reduce((path, [spec, api]) => path.replace(spec, api), field);
  return reworded(named, kind);
}
