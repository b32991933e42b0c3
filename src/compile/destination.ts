import { forbiddenHeaderIn } from '../core/header-template.ts';
import { resourceId } from '../core/ids.ts';
import { plainSecret } from '../core/plain-secret.ts';
import {
  type DestinationRecord,
  type HttpAuthRecord,
  type HttpDestinationRecord,
  type Plan,
  type RetryPolicyRecord,
  recordLayoutVersion,
} from '../core/records.ts';
import type { Keyring } from '../core/sealing.ts';
import { recordSealingContext, type SealedRecordField } from '../core/sealing-contexts.ts';
import { defaultSignatureScheme, signingSecretsFor, signingTexts } from '../core/signature-scheme.ts';
import { urlProblem } from '../core/url-problem.ts';
import { destination as definition } from '../resources/destination.ts';
import { isSendable, sendableRule } from '../resources/http-header.ts';
import type { PosthornObject, SpecOf } from '../resources/kinds.ts';
import { destinationBeyondPlan } from '../resources/plan-gates.ts';
import { type Compiled, type CompiledByPlan, type Refusal, refuse, suspendable } from './compiled.ts';
import { compileTls } from './destination-tls.ts';
import { compileHeaders, type HeaderInput } from './headers.ts';
import type { OrganizationFacts } from './organization.ts';
import { type Seal, sealValue } from './sealed-value.ts';
import { compileWarehouse, warehouseRefusal } from './warehouse.ts';

export interface DestinationInputs {
  organization: OrganizationFacts;
  /** Values behind the references of `destinationSecretReferences`. */
  secrets: Partial<Record<SealedRecordField, string>>;
  /** `spec.http.headers` with their values. */
  headers: readonly HeaderInput[];
  /** Where its targets live: that of the published record, else `shardOf`. */
  shard: number;
  keyring: Keyring;
  /** The published record. The compiler reuses an envelope of it that holds the same value. */
  published: DestinationRecord | null;
}

type HttpSpec = NonNullable<SpecOf<'Destination'>['http']>;

/** Refusals that need no secrets; routes check the destinations that they refer to by it. */
export function destinationRefusal(spec: SpecOf<'Destination'>): Refusal | null {
  const { type, http } = spec;
  if (type !== 'http') return warehouseRefusal(spec);
  if (http === undefined) return { reason: 'Incomplete', message: 'spec.http is required for type http' };
  const problem = urlProblem(http.url);
  if (problem !== null) return { reason: 'InvalidUrl', message: `spec.http.url ${problem}` };
  const { signatureScheme = defaultSignatureScheme, signingSecretRef } = http;
  if (signatureScheme !== defaultSignatureScheme && signingSecretRef === undefined)
    return { reason: 'Incomplete', message: `spec.http.signatureScheme ${signatureScheme} needs spec.http.signingSecretRef` };
  for (const { name, template } of http.headerTemplates ?? []) {
    const problem = forbiddenHeaderIn(template);
    if (problem !== null)
      return { reason: 'InvalidHeader', message: `the template of the header ${name} in spec.http.headerTemplates ${problem}` };
  }
  return null;
}

/** Whether the destination takes deliveries: it is valid and enabled, and the plan of its organization has everything that it uses. */
export function isServing(spec: SpecOf<'Destination'>, plan: Plan): boolean {
  return spec.enabled && destinationRefusal(spec) === null && destinationBeyondPlan(spec, plan) === null;
}

/**
 * Refuses URLs and field mappings that do not parse, credentials that are incomplete or cannot be sent, and malformed signing secrets. What the plan does not have is
 * suspended: its messages wait.
 */
export function compileDestination(object: PosthornObject<'Destination'>, inputs: DestinationInputs): CompiledByPlan<DestinationRecord> {
  const { metadata, spec } = object;
  const { organization, shard, keyring } = inputs;
  const refusal = destinationRefusal(spec);
  if (refusal !== null) return { refusal };
  const id = resourceId(definition.idPrefix, metadata);
  const seal: Seal = (field, plain, before) =>
    sealValue(plain, recordSealingContext(organization.id, 'destination', id, field), before, keyring);
  const compiled = spec.http === undefined ? compileWarehouse(spec, inputs, seal) : compileHttp(spec.http, inputs, seal);
  if (compiled.refusal !== undefined) return compiled;
  const record: DestinationRecord = {
    v: recordLayoutVersion,
    id,
    org: organization.id,
    slug: metadata.name,
    name: spec.name ?? metadata.name,
    ...compiled.record,
    enabled: spec.enabled,
    shard,
    throttle: {
      mode: spec.throttle?.mode ?? 'off',
      rateLimit: spec.throttle?.rateLimit ?? null,
      rateUnit: spec.throttle?.rateUnit ?? null,
      maxConcurrency: spec.throttle?.maxConcurrency ?? null,
      queueLimit: spec.throttle?.queueLimit ?? null,
      ...(spec.throttle?.strict === true && { strict: true }),
    },
    ...(spec.ordered === true && { ordered: true }),
    retryPolicy: compileRetryPolicy(spec.retryPolicy),
    ...(spec.expiresAfterSeconds !== undefined && { expiresAfterSeconds: spec.expiresAfterSeconds }),
    generation: metadata.generation,
  };
  const beyondPlan = destinationBeyondPlan(spec, organization.plan);
  return suspendable(beyondPlan === null ? record : { ...record, suspended: true }, beyondPlan);
}

function compileRetryPolicy(policy: SpecOf<'Destination'>['retryPolicy']): RetryPolicyRecord {
  const { delaysMs, ...growing } = policy ?? definition.spec.shape.retryPolicy.unwrap().parse({});
  return delaysMs === undefined ? growing : { ...growing, maxRetries: delaysMs.length, delaysMs };
}

function compileHttp(
  http: HttpSpec,
  { secrets, headers, published }: DestinationInputs,
  seal: Seal,
): Compiled<Pick<HttpDestinationRecord, 'type' | 'http'>> {
  const before = published?.type === 'http' ? published.http : undefined;
  const auth = compileAuth(http.auth, secrets, before?.auth, seal);
  if (auth.refusal !== undefined) return auth;
  const tls = compileTls(http.tls, secrets, (field, plain) => seal(field, plain, [before?.tls?.[field] ?? '']));
  if (tls.refusal !== undefined) return tls;
  const compiledHeaders = compileHeaders(headers, 'spec.http.headers', before?.headers, (plain, envelopes) =>
    seal('headerValue', plain, envelopes),
  );
  if (compiledHeaders.refusal !== undefined) return compiledHeaders;
  const signingSecrets = compileSigningSecrets(http, secrets.signingSecrets);
  if (signingSecrets.refusal !== undefined) return signingSecrets;
  return {
    record: {
      type: 'http',
      http: {
        url: http.url,
        method: http.method,
        headers: compiledHeaders.record,
        ...(http.headerTemplates !== undefined && http.headerTemplates.length > 0 && { headerTemplates: http.headerTemplates }),
        auth: auth.record,
        timeoutMs: http.timeoutMs,
        ...(tls.record !== null && { tls: tls.record }),
        ...(http.useStaticIp && { useStaticIp: true }),
        ...(http.forwardQuery === true && { forwardQuery: true }),
        ...(http.forwardHeaders !== undefined && { forwardHeaders: http.forwardHeaders.map((name) => name.toLowerCase()) }),
        ...(http.payloadForm === 'thin' && { payloadForm: 'thin' }),
        signingSecrets: signingSecrets.record.map((secret) => seal('signingSecrets', secret, before?.signingSecrets ?? [])),
      },
    },
  };
}

/** Keys that sign under the scheme of the destination. A worker without support for `whsk_` keys makes an unverifiable signature of them; it sends nothing unsigned. */
function compileSigningSecrets(
  { signatureScheme: scheme = defaultSignatureScheme }: HttpSpec,
  value: string | undefined,
): Compiled<string[]> {
  if (value === undefined) return { record: [] };
  const found = signingSecretsFor(value, scheme);
  if (found.problem === undefined) return { record: signingTexts(found, scheme) };
  return refuse('InvalidSigningSecret', `the value behind spec.http.signingSecretRef ${found.problem}`);
}

function compileAuth(
  auth: HttpSpec['auth'],
  secrets: DestinationInputs['secrets'],
  published: HttpAuthRecord | undefined,
  seal: Seal,
): Compiled<HttpAuthRecord> {
  const before = new Map(Object.entries(published ?? {}));
  const plain = (field: SealedRecordField): string => plainSecret(secrets[field] ?? '');
  const unsendable = (['token', 'key', 'headerValue'] as const).find((field) => !isSendable(plain(field)));
  if (unsendable !== undefined) return refuse('InvalidAuth', `the value behind spec.http.auth.${unsendable}SecretRef ${sendableRule}`);
  const sealed = (field: SealedRecordField): string | undefined =>
    plain(field) === '' ? undefined : seal(field, plain(field), [before.get(field) ?? '']);
  const incomplete = (needs: string) => refuse('InvalidAuth', `spec.http.auth of type ${auth?.type} needs ${needs}`);
  switch (auth?.type) {
    case undefined:
    case 'none':
      return { record: { type: 'none' } };
    case 'basic': {
      const password = sealed('password');
      if (auth.username === undefined || password === undefined) return incomplete('username and a value behind passwordSecretRef');
      return { record: { type: 'basic', username: auth.username, password } };
    }
    case 'bearer': {
      const token = sealed('token');
      return token === undefined ? incomplete('a value behind tokenSecretRef') : { record: { type: 'bearer', token } };
    }
    case 'api_key': {
      const key = sealed('key');
      if (auth.headerName === undefined || key === undefined) return incomplete('headerName and a value behind keySecretRef');
      return { record: { type: 'api_key', headerName: auth.headerName, key } };
    }
    case 'custom_header': {
      const headerValue = sealed('headerValue');
      if (auth.headerName === undefined || headerValue === undefined)
        return incomplete('headerName and a value behind headerValueSecretRef');
      return { record: { type: 'custom_header', headerName: auth.headerName, headerValue } };
    }
  }
}
