import { describe, expect, test } from '@jest/globals';
import type { FormField } from '../../api/form-schema.ts';
import { fields as cron } from '../../api/forms/cron.ts';
import { fields as destinations } from '../../api/forms/destinations.ts';
import { fields as eventTypes } from '../../api/forms/event-types.ts';
import { fields as channels } from '../../api/forms/notification-channels.ts';
import { fields as routes } from '../../api/forms/routes.ts';
import { fields as sources } from '../../api/forms/sources.ts';
import { fields as applications } from '../../api/forms/webhook-applications.ts';
import { fields as endpoints } from '../../api/forms/webhook-endpoints.ts';
import { fields as subscriptions } from '../../api/forms/webhook-subscriptions.ts';
import { type Body, bodyOfRecord, changesOf, mergedInto, missingFields, sentBody, withMember } from './form-body.ts';

const throttleOff = { mode: 'off', rateLimit: null, rateUnit: null, strict: null, maxConcurrency: null, queueLimit: null };
const retryPolicy = { maxRetries: 3, initialDelay: 1000, maxDelay: 3_600_000, backoffMultiplier: 4 };

/** As the API returns them. */
const records = {
  source: {
    id: 'src_a',
    name: 'shop',
    slug: 'shop',
    description: null,
    provider: 'custom',
    enabled: true,
    eventsCount: 0,
    verification: { algorithm: 'sha256', header: 'X-Sig', encoding: 'hex', prefix: 'v1=' },
    rejectInvalidSignatures: true,
    rateLimitPerMinute: null,
    ipFilterMode: 'none',
    ipAllowlist: ['10.0.0.0/8'],
    ipDenylist: [],
    dedupStrategy: 'auto',
    dedupHeader: null,
    dedupWindowHours: 48,
    allowedMethods: ['POST'],
    handshake: null,
    hasSigningSecret: true,
  },
  http: {
    id: 'dst_a',
    name: 'web',
    slug: 'web',
    type: 'http',
    url: 'https://a.example/x',
    enabled: true,
    successRate: null,
    description: null,
    method: 'PUT',
    authType: 'bearer',
    timeoutMs: 5000,
    useStaticIp: false,
    throttle: throttleOff,
    retryPolicy,
    headers: {},
    headerTemplates: { 'X-Order': '{{ payload.order.id }}' },
    authConfig: { token: '••••oken' },
    tls: { caBundle: 'PEM', clientCertificate: '••••', clientKey: '••••' },
    forwardQuery: false,
    forwardHeaders: [],
    payloadForm: 'full',
    ordered: false,
    signingSecret: null,
  },
  s3: {
    id: 'dst_b',
    name: 'lake',
    slug: 'lake',
    type: 's3',
    url: '',
    enabled: true,
    description: null,
    throttle: { ...throttleOff, mode: 'rate', rateLimit: 5, rateUnit: 'second', strict: false },
    retryPolicy,
    config: {
      bucket: 'bucket',
      region: 'eu-west-1',
      accessKeyId: 'AKIAAAAAAAAAAAAA',
      secretAccessKey: '••••mnop',
      prefix: 'p',
      fileFormat: 'jsonl',
      partitionBy: 'date',
      identity: 'keys',
    },
    fieldMapping: [],
  },
  route: {
    id: 'rte_a',
    name: 'r',
    slug: 'r',
    sourceId: 'src_a',
    destinationIds: ['dst_a'],
    enabled: true,
    description: null,
    filterId: null,
    filterConditions: [{ field: 'payload.a', operator: 'equals', value: '1000' }],
    filterLogic: 'AND',
    transformId: null,
    schemaId: null,
    priority: 7,
    failoverDestinationIds: ['dst_b'],
    failoverAfterAttempts: 3,
    expectedResponse: { statusCodes: [200], bodyContains: 'ok' },
    notifyEmails: null,
    notificationChannelIds: ['nch_a'],
    failureThreshold: 3,
  },
  cron: {
    id: 'cron_a',
    name: 'c',
    slug: 'c',
    cronExpression: '0 * * * *',
    url: 'https://a.example/x',
    method: 'POST',
    description: null,
    timezone: 'UTC',
    timeoutMs: 30_000,
    useStaticIp: false,
    isActive: true,
    headers: '{"x-a":"1"}',
    payload: null,
  },
  channel: {
    id: 'nch_a',
    name: 's',
    slug: 's',
    type: 'webhook',
    enabled: true,
    config: { url: 'https://a.example/h', headers: { 'x-a': '••••bbbb' }, secret: null },
  },
  application: {
    id: 'app_a',
    externalId: null,
    name: 'app',
    metadata: { region: 'eu', none: null },
    rateLimitPerSecond: 100,
    isDisabled: false,
    disabledReason: null,
    disableAfterHours: null,
  },
  endpoint: {
    id: 'ep_a',
    applicationId: 'app_a',
    url: 'https://hooks.example.com/in',
    description: null,
    headers: [{ name: 'X-Tenant', value: 'acme' }],
    headerTemplates: [{ name: 'X-Order', template: '{{ payload.order.id }}' }],
    timeoutSeconds: 30,
    rateLimitPerSecond: 0,
    rateLimitStrict: false,
    ordered: false,
    payloadForm: 'full',
    circuitFailureThreshold: 5,
    isDisabled: false,
    disabledReason: null,
    disableAfterHours: null,
  },
  eventType: { id: 'etp_a', name: 'order.paid', displayName: null, schema: '{"type":"object"}', isEnabled: true, isDeprecated: false },
};
const formOf: Record<keyof typeof records, readonly FormField[]> = {
  source: sources,
  http: destinations,
  s3: destinations,
  route: routes,
  cron,
  channel: channels,
  application: applications,
  endpoint: endpoints,
  eventType: eventTypes,
};

/** What the form sends after `edit` of what it begins with. */
function edited(name: keyof typeof records, edit: (start: Body) => Body) {
  const fields = formOf[name];
  const start = bodyOfRecord(fields, records[name]);
  return changesOf(fields, start, sentBody(fields, edit(start)));
}
const without = (body: Body, ...path: string[]): Body => {
  const [name = '', ...rest] = path;
  return withMember(body, name, rest.length === 0 ? undefined : without({ ...Object(body[name]) }, ...rest));
};

describe('a form that changes a record', () => {
  test.each(['source', 'http', 's3', 'route', 'cron', 'channel', 'application', 'eventType'] as const)(
    'opens a %s without a change',
    (name) => {
      expect(edited(name, (start) => start)).toEqual({ patch: {}, stuck: [] });
      expect(missingFields(formOf[name], bodyOfRecord(formOf[name], records[name]))).toEqual([]);
    },
  );

  test('a form that changes a record begins without nulls, without what does not count, and with maps', () => {
    expect(bodyOfRecord(destinations, records.http)['throttle']).toEqual({ mode: 'off' });
    expect(Object.keys(bodyOfRecord(destinations, records.s3))).not.toContain('url');
    expect(bodyOfRecord(cron, records.cron)['headers']).toEqual({ 'x-a': '1' });
    expect(bodyOfRecord(applications, records.application)['metadata']).toEqual({ region: 'eu', none: null });
  });

  test('a form that changes a record sends of an object only what differs', () => {
    const tls = edited('http', (start) => ({ ...start, tls: { ...Object(start['tls']), caBundle: 'NEW' } }));
    expect(tls).toEqual({ patch: { tls: { caBundle: 'NEW' } }, stuck: [] });
    const paced = edited('http', (start) => ({ ...start, throttle: { mode: 'concurrency', maxConcurrency: 2 } }));
    expect(paced.patch).toEqual({ throttle: { mode: 'concurrency', maxConcurrency: 2 } });
    expect(edited('s3', (start) => ({ ...start, throttle: { mode: 'off' } })).patch).toEqual({
      throttle: { mode: 'off', rateLimit: null, rateUnit: null, strict: null },
    });
  });

  test('a form that changes a record sends objects whole that the API replaces, and one that is for another choice', () => {
    expect(edited('source', (start) => without(start, 'verification', 'prefix')).patch).toEqual({
      verification: { algorithm: 'sha256', header: 'X-Sig', encoding: 'hex' },
    });
    expect(edited('route', (start) => without(start, 'expectedResponse', 'bodyContains')).patch).toEqual({
      expectedResponse: { statusCodes: [200] },
    });
    const keyed = { authType: 'api_key', authConfig: { token: '••••oken', headerName: 'X-Key', key: 'k' } };
    expect(edited('http', (start) => ({ ...start, ...keyed })).patch).toEqual({
      authType: 'api_key',
      authConfig: { headerName: 'X-Key', key: 'k' },
    });
  });

  test('empties a field with null, its default or an empty list, or says that it cannot', () => {
    const gone = (name: keyof typeof records, ...path: string[]) => edited(name, (start) => without(start, ...path));
    expect(gone('http', 'tls', 'caBundle').patch).toEqual({ tls: { caBundle: null } });
    expect(gone('channel', 'config', 'headers').patch).toEqual({ config: { headers: null } });
    expect(gone('http', 'retryPolicy', 'maxRetries').patch).toEqual({ retryPolicy: { maxRetries: 10 } });
    expect(gone('http', 'retryPolicy').patch).toEqual({ retryPolicy: { maxRetries: 10 } });
    expect(gone('http', 'timeoutMs').patch).toEqual({ timeoutMs: 30_000 });
    expect(gone('http', 'method').patch).toEqual({ method: 'POST' });
    expect(gone('source', 'ipAllowlist').patch).toEqual({ ipAllowlist: [] });
    expect(gone('source', 'ipDenylist').patch).toEqual({});
    expect(gone('route', 'priority').patch).toEqual({ priority: 0 });
    expect(gone('route', 'failoverDestinationIds').patch).toEqual({ failoverDestinationIds: [] });
    expect(gone('route', 'filterConditions').patch).toEqual({ filterConditions: null });
    expect(gone('s3', 'config', 'prefix')).toEqual({ patch: {}, stuck: ['config.prefix'] });
  });

  test('a form that changes a record keeps an empty list apart from none, which means all', () => {
    expect(edited('route', (start) => ({ ...start, notificationChannelIds: [] })).patch).toEqual({ notificationChannelIds: [] });
    expect(edited('route', (start) => without(start, 'notificationChannelIds')).patch).toEqual({ notificationChannelIds: null });
    expect(bodyOfRecord(destinations, records.http)['forwardHeaders']).toEqual([]);
    expect(edited('http', (start) => without(start, 'forwardHeaders')).patch).toEqual({ forwardHeaders: null });
    const listed = { ...bodyOfRecord(destinations, records.http), forwardHeaders: ['X-A'] };
    expect(changesOf(destinations, listed, { ...listed, forwardHeaders: [] }).patch).toEqual({ forwardHeaders: [] });
  });

  test('empties JSON that is an object with an empty one, and says that it cannot empty other JSON', () => {
    const labels = { labelFilters: { region: 'eu' } };
    expect(changesOf(subscriptions, labels, {})).toEqual({ patch: { labelFilters: {} }, stuck: [] });
    expect(changesOf(subscriptions, { labelFilters: {} }, {})).toEqual({ patch: {}, stuck: [] });
    const value: FormField = { name: 'value', help: '', node: { kind: 'json' } };
    expect(changesOf([value], { value: 1 }, {})).toEqual({ patch: {}, stuck: ['value'] });
  });

  test('recognizes a stored secret by its mask, or by its flag in the record, and removes it with null', () => {
    expect(bodyOfRecord(sources, records.source)['signingSecret']).toBe('••••');
    expect(Object.keys(bodyOfRecord(sources, { ...records.source, hasSigningSecret: false }))).not.toContain('signingSecret');
    expect(edited('source', (start) => ({ ...start, signingSecret: null })).patch).toEqual({ signingSecret: null });
    const tls = { caBundle: 'PEM', clientCertificate: null, clientKey: null };
    expect(edited('http', (start) => ({ ...start, tls })).patch).toEqual({ tls: { clientCertificate: null, clientKey: null } });
  });

  test('a form that changes a record takes the identity of the pods in place of the keys', () => {
    const identity = (start: Body): Body => ({ ...start, config: { ...Object(start['config']), identity: 'platform' } });
    expect(edited('s3', identity).patch).toEqual({ config: { identity: 'platform' } });
  });
});

describe('a body that was typed as JSON', () => {
  const start = bodyOfRecord(destinations, records.http);
  const back = (patch: Body) => changesOf(destinations, start, sentBody(destinations, mergedInto(destinations, start, patch))).patch;

  test('says the same in the form', () => {
    for (const patch of [
      { tls: { caBundle: 'NEW' } },
      { throttle: { mode: 'rate', rateLimit: 5, rateUnit: 'second' } },
      { tls: { clientCertificate: null, clientKey: null } },
      { signingSecret: null },
      { tls: null, headers: { 'x-a': '1' } },
      { unknown: 1 },
    ])
      expect(back(patch)).toEqual(patch);
  });
});
