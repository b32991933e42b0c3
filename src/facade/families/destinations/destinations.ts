import { z } from 'zod';
import { canonicalJson } from '../../../core/canonical-json.ts';
import { PosthornError } from '../../../core/errors.ts';
import { isForwardedHeader } from '../../../core/forwarded-headers.ts';
import { originOf } from '../../../core/origin.ts';
import { defaultPayloadForm } from '../../../core/payload-link.ts';
import { description } from '../../../resources/fields.ts';
import { kinds, type PosthornObject, type SpecInputOf } from '../../../resources/kinds.ts';
import { isPaidPlan } from '../../../resources/plan-gates.ts';
import { httpUrl } from '../../../resources/url.ts';
import type { Call } from '../../http/operation.ts';
import { pageQuery } from '../../http/pagination.ts';
import { queryBoolean, querySearch } from '../../http/query.ts';
import { idOf } from '../../records/lookup.ts';
import { readMasked, readToShow, type SecretKeyRef } from '../../records/read-secret.ts';
import {
  clearableToSpec,
  identityOf,
  isoTimeOrNull,
  nameOf,
  nameToSpec,
  recordIdentity,
  recordSwitch,
  recordTimes,
  sentName,
  sentSlug,
  sentSwitch,
  shownDescription,
  switchOf,
  switchSynonym,
  timesOf,
  timestamp,
} from '../../records/record-fields.ts';
import { resourceFamily } from '../../records/resource-family.ts';
import { resourceDefinition, type SpecInput } from '../../records/resource-family-definition.ts';
import { matchesText } from '../../records/search.ts';
import { shownField, specField, textOf } from '../../records/spec-field.ts';
import { bulkDelete } from '../shared/bulk-delete.ts';
import { headerMap, headerValueOrMask } from '../shared/header-map.ts';
import { payloadFormToSpec } from '../shared/payload-form.ts';
import { losesTls } from '../shared/redaction.ts';
import { headerList, headerObject, headersToSpec, lacksHeader, refuseHeadersElsewhere, shownHeaders } from '../shared/static-headers.ts';
import { authConfig, authToRecord, authToSpec, authType, carriesCredentialElsewhere, lacksCredential } from './destination-auth.ts';
import { destinationExportOperation, unusedFields } from './destination-export.ts';
import { destinationImportOperation } from './destination-import.ts';
import { orderedToSpec } from './destination-order.ts';
import {
  expiryBody,
  expiryRecord,
  retryPolicyBody,
  retryPolicyRecord,
  retryPolicyToRecord,
  retryPolicyToSpec,
  throttleBody,
  throttleRecord,
  throttleToRecord,
  throttleToSpec,
} from './destination-pace.ts';
import { signingBody, signingFields, signingRecord, signingToRecord, signingToSpec } from './destination-signing.ts';
import { templatesBody, templatesRecord, templatesToRecord, templatesToSpec } from './destination-templates.ts';
import { destinationTestOperation } from './destination-test.ts';
import { keepsClientKey, shownPem, tlsBody, tlsRecord, tlsToRecord, tlsToSpec } from './destination-tls.ts';
import {
  fieldMapping,
  lacksStoreCredential,
  shownCredential,
  warehouseConfig,
  warehouseToRecord,
  warehouseToSpec,
} from './destination-warehouse.ts';

const spec = kinds.Destination.spec.shape;
const http = spec.http.unwrap().shape;

const item = z
  .object({
    ...recordIdentity,
    type: shownField(spec.type),
    url: z.string().describe('Empty for warehouse destinations.'),
    ...recordSwitch(spec.enabled),
    config: warehouseConfig.optional().describe('Of warehouse destinations; credentials masked.'),
    successRate: z.number().nullable().describe('Percent of deliveriesCount that were delivered; null before the first.'),
    avgLatency: z.number().nullable().describe('Milliseconds, of all attempts since it was created; null before the first.'),
    deliveriesCount: z.int().min(0).describe('Deliveries that have ended since it was created, delivered or not.'),
    deliveryCount: z.int().min(0).describe('The same as deliveriesCount.'),
    lastDeliveryAt: timestamp.nullable().describe('When the last attempt ended.'),
    description: shownDescription,
    method: shownField(http.method).optional(),
    authType: authType.optional(),
    timeoutMs: shownField(http.timeoutMs).optional(),
    useStaticIp: shownField(http.useStaticIp).optional(),
    throttle: throttleRecord,
    retryPolicy: retryPolicyRecord,
    expiresAfterSeconds: expiryRecord,
    ...recordTimes,
  })
  .meta({ id: 'DestinationItem' });

const forwardHeadersText = textOf(http.forwardHeaders);
const shownForwardHeaders = z.array(z.string()).nullable().describe(`${forwardHeadersText} Null: there is no list.`);

const record = item
  .extend({
    headers: z.record(z.string(), z.string()).optional().describe('Sent with every delivery; credentials among them are masked.'),
    headerTemplates: templatesRecord,
    authConfig: authConfig.nullable().optional().describe('Credentials, masked; null with authType none.'),
    tls: tlsRecord.nullable().optional().describe('Private certificate authority and mutual TLS.'),
    forwardQuery: shownField(http.forwardQuery).optional(),
    forwardHeaders: shownForwardHeaders.optional(),
    payloadForm: shownField(http.payloadForm).optional(),
    ordered: shownField(spec.ordered).optional(),
    fieldMapping: fieldMapping.optional().describe('Of warehouse destinations.'),
    ...signingRecord,
  })
  .meta({ id: 'Destination' });

const headers = headerMap(headerValueOrMask, 50).describe(
  'Sent with every delivery; on change it replaces the whole map. Credentials are masked on read; a mask sent back keeps what is stored.',
);

const body = z.strictObject({
  name: sentName.optional(),
  slug: sentSlug.optional(),
  type: specField(spec.type),
  description: description.nullable().optional(),
  ...sentSwitch(spec.enabled),
  url: z
    .string()
    .max(2048)
    .meta({ format: 'uri' })
    .optional()
    .describe('Absolute http or https URL without user and password; https recommended.'),
  method: specField(http.method),
  headers: headers.nullable().optional(),
  headerTemplates: templatesBody,
  authType: authType.optional().meta({ default: 'none' }),
  authConfig: authConfig.nullable().optional().describe('Credentials; the fields depend on authType.'),
  timeoutMs: specField(http.timeoutMs),
  tls: tlsBody.nullable().optional().describe('Private certificate authority and mutual TLS; null removes it.'),
  useStaticIp: specField(http.useStaticIp),
  forwardQuery: specField(http.forwardQuery),
  forwardHeaders: specField(http.forwardHeaders).unwrap().nullable().optional().describe(`${forwardHeadersText} Null removes the list.`),
  payloadForm: specField(http.payloadForm).meta({ default: defaultPayloadForm }),
  config: warehouseConfig.optional(),
  fieldMapping: fieldMapping.nullable().optional(),
  ordered: specField(spec.ordered),
  throttle: throttleBody.optional(),
  retryPolicy: retryPolicyBody.optional(),
  expiresAfterSeconds: expiryBody,
  ...signingBody,
});

const definition = resourceDefinition({
  kind: 'Destination',
  name: 'Destinations',
  path: '/destinations',
  description: 'Where events are delivered to.',
  record,
  item,
  body,
  fieldCodes: { url: 'INVALID_URL' },
  required: ['name'],
  synonyms: { isActive: switchSynonym() },
  immutable: { slug: (object) => [object.metadata.name], type: (object) => [object.spec.type] },
  query: z.object({
    ...pageQuery,
    enabled: queryBoolean.optional().describe('Only those that are enabled, or not.'),
    search: querySearch.optional().describe('Part of the name or URL.'),
  }),
  examples: {
    create: { name: 'Orders', url: 'https://shop.example.com/webhooks', authType: 'bearer', authConfig: { token: 'a-long-random-token' } },
    change: { timeoutMs: 10_000, retryPolicy: { maxRetries: 5 } },
    shown: {
      successRate: 99.5,
      avgLatency: 84.25,
      deliveriesCount: 1200,
      headers: {},
      headerTemplates: {},
      authConfig: { token: '••••oken' },
      description: null,
      timeoutMs: 30_000,
      tls: null,
      useStaticIp: false,
      forwardQuery: false,
      forwardHeaders: null,
      payloadForm: 'full',
      ordered: false,
      throttle: throttleToRecord(undefined),
      retryPolicy: retryPolicyToRecord(undefined),
      expiresAfterSeconds: null,
      ...signingFields.shown,
      config: undefined,
      fieldMapping: undefined,
    },
  },
  errors: { create: ['INVALID_URL'], change: ['INVALID_URL', 'CREDENTIALS_REQUIRED'] },
  filter:
    ({ enabled, search }) =>
    (object) =>
      (enabled === undefined || object.spec.enabled === enabled) && matchesText(search, nameOf(object), object.spec.http?.url),
  toItem,
  toRecord: async (object, call): Promise<z.input<typeof record>> => ({
    ...(await toItem(object, call)),
    ...(object.spec.type === 'http' ? await httpToRecord(object, call) : await warehouseToRecord(object.spec, shownBy(call, object))),
  }),
  toSpec: async ({ call, body: sent, current, secrets }) =>
    ({
      ...current?.spec,
      name: nameToSpec(sent.name, current),
      description: clearableToSpec(sent.description, current?.spec.description),
      enabled: sent.enabled ?? current?.spec.enabled,
      ...(await targetToSpec({ call, body: sent, current, secrets })),
      ordered: orderedToSpec(call, sent.ordered, current),
      throttle: throttleToSpec(sent.throttle, current?.spec.throttle, call),
      retryPolicy: retryPolicyToSpec(sent.retryPolicy, current?.spec.retryPolicy),
      expiresAfterSeconds: clearableToSpec(sent.expiresAfterSeconds, current?.spec.expiresAfterSeconds),
    }) satisfies SpecInputOf<'Destination'>,
  beforeDelete: { looksAt: ['Route'] },
});

export const destinations = resourceFamily(definition, [
  bulkDelete({
    kind: 'Destination',
    path: '/destinations',
    noun: 'destinations',
    description:
      'Takes them out of all routes; their history stays. Unknown ids are skipped. When Git owns one of them, or the list of a route that names one, nothing is deleted.',
  }),
  destinationTestOperation,
  destinationExportOperation,
  destinationImportOperation(definition),
]);

async function toItem(object: PosthornObject<'Destination'>, call: Call): Promise<z.input<typeof item>> {
  const { services, caller } = call;
  const { deliveries, successes, averageLatencyMs, lastDeliveryAtMs } = await services.messages.destinationCounters(
    caller.organization.id,
    idOf(object),
  );
  return {
    ...identityOf(object, call),
    type: object.spec.type,
    url: object.spec.http?.url ?? '',
    ...switchOf(object),
    successRate: deliveries === 0 ? null : rounded((100 * successes) / deliveries),
    avgLatency: averageLatencyMs === null ? null : rounded(averageLatencyMs),
    deliveriesCount: deliveries,
    deliveryCount: deliveries,
    lastDeliveryAt: isoTimeOrNull(lastDeliveryAtMs),
    description: object.spec.description ?? null,
    ...pacedHttp(object),
    throttle: throttleToRecord(object.spec.throttle),
    retryPolicy: retryPolicyToRecord(object.spec.retryPolicy),
    expiresAfterSeconds: object.spec.expiresAfterSeconds ?? null,
    ...timesOf(object),
    ...(object.spec.type !== 'http' && { config: (await warehouseToRecord(object.spec, shownBy(call, object))).config }),
  };
}

/** Request fields in lists, which have no secrets. */
function pacedHttp({ spec: { http: settings } }: PosthornObject<'Destination'>) {
  if (settings === undefined) return {};
  const { method, auth, timeoutMs, useStaticIp } = settings;
  return { method, authType: auth?.type ?? 'none', timeoutMs, useStaticIp } as const;
}

function shownBy(call: Call, object: PosthornObject<'Destination'>): (ref: SecretKeyRef) => Promise<string> {
  return async (ref) => shownCredential(await readToShow(call, object, ref));
}

/** The fields of HTTP destinations, which warehouses do not have. */
const httpFields = [
  'url',
  'method',
  'headers',
  'headerTemplates',
  'authType',
  'authConfig',
  'timeoutMs',
  'tls',
  'useStaticIp',
  'forwardQuery',
  'forwardHeaders',
  'payloadForm',
  'ordered',
  ...signingFields.names,
] as const;

/** Whether it is what the records of warehouses have in the field, or the default that clients send. */
function isUnused(field: (typeof httpFields)[number], value: unknown): boolean {
  const unused: Readonly<Record<string, unknown>> = {
    ...unusedFields,
    headerTemplates: {},
    useStaticIp: false,
    forwardQuery: false,
    payloadForm: defaultPayloadForm,
    ordered: false,
    ...signingFields.unused,
  };
  return value === '' || canonicalJson(value) === canonicalJson(unused[field] ?? null);
}

/** Checks by the type of the destination. VALIDATION_FAILED for fields of the other kind. */
async function targetToSpec(input: SpecInput<'Destination', typeof body>) {
  const { call, body: sent, current, secrets } = input;
  const type = current?.spec.type ?? sent.type ?? 'http';
  if (type === 'http') {
    for (const field of ['config', 'fieldMapping'] as const)
      if (sent[field] !== undefined) throw new PosthornError('VALIDATION_FAILED', `${field} does not belong to type http.`);
    return { http: await httpToSpec(input) };
  }
  const misfit = httpFields.find((field) => (sent[field] ?? null) !== null && !isUnused(field, sent[field]));
  if (misfit !== undefined) throw new PosthornError('VALIDATION_FAILED', `${misfit} does not belong to type ${type}.`);
  const isBeingEnabled = sent.enabled === true && current?.spec.enabled === false;
  if (isBeingEnabled && (await lacksStoreCredential(current, sent.config, call)))
    throw new PosthornError('CREDENTIALS_REQUIRED', 'The destination was imported without its credential: send it in config first.');
  return { type, ...(await warehouseToSpec(type, sent, { current: current?.spec, call, secrets })) };
}

async function httpToRecord(object: PosthornObject<'Destination'>, call: Call) {
  const settings = object.spec.http;
  if (settings === undefined) return {};
  return {
    headers: headerObject(await shownHeaders(call, object, settings.headers)),
    headerTemplates: templatesToRecord(settings.headerTemplates),
    ...(await authToRecord(settings.auth, (ref) => readMasked(call, object, ref))),
    tls: await tlsToRecord(settings.tls, shownPem),
    forwardQuery: settings.forwardQuery ?? false,
    forwardHeaders: settings.forwardHeaders ?? null,
    payloadForm: settings.payloadForm ?? defaultPayloadForm,
    ordered: object.spec.ordered ?? false,
    ...(await signingToRecord(object, settings, call)),
  };
}

async function httpToSpec({ call, body: sent, current, secrets }: SpecInput<'Destination', typeof body>) {
  const settings = current?.spec.http;
  if (sent.url === undefined && settings === undefined) throw new PosthornError('VALIDATION_FAILED', 'url is required.');
  const url = checkedUrl(sent.url ?? settings?.url ?? '', call);
  const auth = await authToSpec(sent, settings?.auth, secrets);
  const sentHeaders = sent.headers === undefined ? undefined : headerList(sent.headers);
  refuseHeadersElsewhere(call, settings, { url, headers: sentHeaders });
  const headers = await headersToSpec(sentHeaders, { current, stored: settings?.headers, path: ['http', 'headers'], secrets });
  // Not even an admin's credential goes out in clear.
  const mustShow = call.caller.role !== 'admin' || losesTls(settings?.url, url);
  if (mustShow && carriesCredentialElsewhere(settings, url, sent.authConfig, auth)) {
    throw new PosthornError('CREDENTIALS_REQUIRED', 'The URL has another origin: send authConfig with the credentials for it.');
  }
  const isElsewhere = settings !== undefined && originOf(settings.url) !== originOf(url);
  if (mustShow && isElsewhere && keepsClientKey(sent.tls, settings.tls)) {
    throw new PosthornError('CREDENTIALS_REQUIRED', 'The URL has another origin: send tls.clientCertificate and tls.clientKey for it.');
  }
  if (sent.useStaticIp === true && settings?.useStaticIp !== true && !isPaidPlan(call.caller.organization.plan))
    throw new PosthornError('FORBIDDEN', 'useStaticIp needs a paid plan.');
  const isBeingEnabled = sent.enabled === true && current?.spec.enabled === false;
  if (isBeingEnabled && (await lacksCredential(auth, current, call))) {
    throw new PosthornError('CREDENTIALS_REQUIRED', 'The destination was imported without its credentials: send authConfig first.');
  }
  if (isBeingEnabled && (await lacksHeader(call, current, settings?.headers, headers)))
    throw new PosthornError('CREDENTIALS_REQUIRED', 'The destination was imported without its credentials: send headers first.');
  const unstored = (sent.forwardHeaders ?? []).filter((name) => !isForwardedHeader(name));
  if (unstored.length > 0)
    call.warn(`forwardHeaders: ${unstored.join(', ')} of a sender is not kept with its event, so it is never sent on`);
  return {
    ...settings,
    url,
    method: sent.method ?? settings?.method,
    headers,
    headerTemplates: templatesToSpec(call, sent.headerTemplates, settings?.headerTemplates),
    auth,
    timeoutMs: sent.timeoutMs ?? settings?.timeoutMs,
    tls: await tlsToSpec(sent.tls, current, { call, secrets }),
    useStaticIp: sent.useStaticIp ?? settings?.useStaticIp,
    // Without a default in the schema false, sent back as it was shown, is no change.
    forwardQuery:
      sent.forwardQuery === (settings?.forwardQuery ?? false) ? settings?.forwardQuery : (sent.forwardQuery ?? settings?.forwardQuery),
    forwardHeaders: sent.forwardHeaders === undefined ? settings?.forwardHeaders : (sent.forwardHeaders ?? undefined),
    payloadForm: payloadFormToSpec(call, sent.payloadForm, settings?.payloadForm),
    ...(await signingToSpec(sent, { current, call, secrets })),
  };
}

function checkedUrl(url: string, call: Call): string {
  const checked = httpUrl.safeParse(url);
  const protocol = URL.parse(url)?.protocol;
  if (!checked.success || protocol === undefined) {
    const why = checked.error?.issues[0]?.message ?? 'must be an absolute http or https URL';
    throw new PosthornError('INVALID_URL', `url ${why}.`);
  }
  if (protocol === 'http:') call.warn('the URL is not https: deliveries are not encrypted');
  return url;
}

function rounded(value: number): number {
  return Math.round(value * 100) / 100;
}
