import { randomBytes } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { createCertificateAuthority } from '../../test/support/certificate-authority.ts';
import { storedObject } from '../../test/support/objects.ts';
import { httpSettings } from '../../test/support/records.ts';
import type { Plan } from '../core/records.ts';
import { Keyring } from '../core/sealing.ts';
import { recordSealingContext } from '../core/sealing-contexts.ts';
import { shardOf } from '../core/shard-of.ts';
import { kinds, type SpecInputOf } from '../resources/kinds.ts';
import { compileApiKey } from './api-key.ts';
import { compileDestination, isServing } from './destination.ts';
import { destinationSecretReferences } from './destination-secrets.ts';
import { compileFilterDefinition } from './filter.ts';
import { compileOrganization, organizationFacts } from './organization.ts';
import { compileRoute } from './route.ts';
import { compileSource } from './source.ts';
import { warehouseRefusal } from './warehouse.ts';

const keyring = new Keyring([{ id: 'k1', key: randomBytes(32) }]);
const acme = storedObject('Organization', 'acme', { namespace: 'acme', plan: 'starter' });
const organization = organizationFacts(acme);
const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;

function destination(
  spec: SpecInputOf<'Destination'>,
  secrets: Parameters<typeof compileDestination>[1]['secrets'] = {},
  plan: Plan = 'pro',
) {
  return compileDestination(storedObject('Destination', 'shop', spec, 'acme'), {
    organization: { ...organization, plan },
    secrets,
    headers: (spec.http?.headers ?? []).map(({ name, value = '' }) => ({ name, value, isSecret: false })),
    shard: 0,
    keyring,
    published: null,
  });
}

describe('the record of', () => {
  test('an Organization matches its snapshot', () => {
    const egress = { allowedCidrs: ['10.0.0.0/8'], allowedHosts: ['*.Shop.svc.cluster.local'] };
    expect(compileOrganization(storedObject('Organization', 'acme', { namespace: 'acme', plan: 'free', egress }))).toMatchSnapshot();
  });

  test('the least Source matches its snapshot', () => {
    const object = storedObject('Source', 'orders', {}, 'acme');
    expect(compileSource(object, { organization, signingSecret: undefined, keyring, published: null })).toMatchSnapshot();
  });

  test('the least Destination matches its snapshot', () => {
    expect(destination({ http: { url: 'https://shop.example/hook' } })).toMatchSnapshot();
  });

  test('a Destination with everything but secrets matches its snapshot', () => {
    expect(
      destination({
        name: 'The shop',
        enabled: false,
        http: { url: 'https://shop.example/hook', method: 'PUT', headers: [{ name: 'X-Team', value: 'a' }], timeoutMs: 5000 },
        throttle: { mode: 'rate', rateLimit: 20, rateUnit: 'minute', queueLimit: 1000 },
        retryPolicy: { maxRetries: 2 },
      }),
    ).toMatchSnapshot();
  });

  test('the least Route matches its snapshot', () => {
    const object = storedObject('Route', 'all', { sourceRef: { name: 'orders' }, destinationRefs: [{ name: 'shop' }] }, 'acme');
    const inputs = {
      organization,
      sourceId: 'src_a',
      filter: null,
      transformId: null,
      schemaId: null,
      destinations: [{ id: 'dst_a', shard: 0 }],
      failoverDestinations: [],
      channelIds: null,
    };
    expect(compileRoute(object, inputs)).toMatchSnapshot();
  });

  test('a Route with everything matches its snapshot', () => {
    const spec: SpecInputOf<'Route'> = {
      name: 'Large orders',
      sourceRef: { name: 'orders' },
      destinationRefs: [{ name: 'shop' }],
      filter: { logic: 'OR', conditions: [{ field: 'payload.total', operator: 'gt', value: 1000 }] },
      priority: 5,
      enabled: false,
      expectedResponse: { statusCodes: [202], bodyContains: 'ok' },
      failover: { destinationRefs: [{ name: 'standby' }], afterAttempts: 2 },
      circuit: { failureThreshold: 9, cooldownSeconds: 60, probeSuccessThreshold: 1 },
      notifications: { onFailure: true, onRecovery: true, failureThreshold: 1, channelRefs: [{ name: 'ops' }], emails: ['a@example.com'] },
    };
    const inputs = {
      organization,
      sourceId: 'src_a',
      filter: { logic: 'OR' as const, conditions: [{ field: 'payload.total', operator: 'gt' as const, value: 1000 }] },
      transformId: 'trf_a',
      schemaId: 'sch_a',
      destinations: [{ id: 'dst_a', shard: 0 }],
      failoverDestinations: [{ id: 'dst_b', shard: 0, isServing: true }],
      channelIds: ['nch_a'],
    };
    expect(compileRoute(storedObject('Route', 'large', spec, 'acme'), inputs)).toMatchSnapshot();
  });

  test('a Route leaves out failover destinations that do not serve, and keeps the others in their order', () => {
    const spec = { sourceRef: { name: 'orders' }, destinationRefs: [{ name: 'shop' }] };
    const failoverDestinations = [false, true, false, true].map((isServing, k) => ({ id: `dst_${k}`, shard: k, isServing }));
    const references = { sourceId: 'src_a', filter: null, transformId: null, schemaId: null, channelIds: null };
    const inputs = { organization, ...references, destinations: [{ id: 'dst_a', shard: 0 }], failoverDestinations };
    const { failover } = compileRoute(storedObject('Route', 'small', spec, 'acme'), inputs);
    expect(failover).toEqual({
      destinations: [
        { id: 'dst_1', shard: 1 },
        { id: 'dst_3', shard: 3 },
      ],
      afterAttempts: 3,
    });
  });

  test('an ApiKey matches its snapshot', () => {
    const spec = { sha256: 'ab'.repeat(32), role: 'viewer' as const, expiresAt: '2027-01-01T00:00:00Z' };
    expect(compileApiKey(storedObject('ApiKey', 'ci', spec, 'acme'), organization)).toMatchSnapshot();
  });
});

describe('secrets', () => {
  const bearer = { type: 'bearer', tokenSecretRef: { name: 's', key: 't' } } as const;
  const spec = { http: { url: 'https://shop.example/hook', auth: { ...bearer, tokenSecretRef: { ...bearer.tokenSecretRef } } } };

  test('secrets are in the record sealed for it, and in clear nowhere', () => {
    const { record } = destination(spec, { token: 'canary-token', signingSecrets: secret });
    expect(JSON.stringify(record)).not.toContain('canary-token');
    const auth = record && httpSettings(record).auth;
    if (record === undefined || auth?.type !== 'bearer') throw new Error('not a bearer record');
    expect(keyring.open(auth.token, recordSealingContext(organization.id, 'destination', record.id, 'token'))).toBe('canary-token');
    expect(
      keyring.open(
        httpSettings(record).signingSecrets[0] ?? '',
        recordSealingContext(organization.id, 'destination', record.id, 'signingSecrets'),
      ),
    ).toBe(secret);
  });

  test('give the same record again while they are the same, and another when they changed', () => {
    const object = storedObject('Destination', 'shop', spec, 'acme');
    const inputs = { organization, headers: [], shard: 0, keyring };
    const first = compileDestination(object, { ...inputs, secrets: { token: 'a' }, published: null }).record ?? null;
    expect(compileDestination(object, { ...inputs, secrets: { token: 'a' }, published: first }).record).toEqual(first);
    expect(compileDestination(object, { ...inputs, secrets: { token: 'b' }, published: first }).record).not.toEqual(first);
  });

  test('lose the line break that a file brought along', () => {
    const { record } = destination(spec, { token: 'a\n' });
    const auth = record && httpSettings(record).auth;
    if (record === undefined || auth?.type !== 'bearer') throw new Error('not a bearer record');
    expect(keyring.open(auth.token, recordSealingContext(organization.id, 'destination', record.id, 'token'))).toBe('a');
  });

  const reference = { name: 's', key: 't' };
  test.each([
    { field: 'password', auth: { type: 'basic', username: 'me', passwordSecretRef: reference } },
    { field: 'token', auth: { type: 'bearer', tokenSecretRef: reference } },
    { field: 'key', auth: { type: 'api_key', headerName: 'x-key', keySecretRef: reference } },
    { field: 'headerValue', auth: { type: 'custom_header', headerName: 'x-token', headerValueSecretRef: reference } },
  ] as const)('secrets of auth type $auth.type are sealed as $field', ({ field, auth }) => {
    const { record } = destination({ http: { url: 'https://shop.example/hook', auth } }, { [field]: 'value' });
    if (record === undefined) throw new Error('refused');
    const sealed = new Map(Object.entries(httpSettings(record).auth)).get(field) ?? '';
    expect(keyring.open(sealed, recordSealingContext(organization.id, 'destination', record.id, field))).toBe('value');
  });

  test('secrets of TLS are sealed, and are refused when they do not belong together', () => {
    const authority = createCertificateAuthority();
    const [own, other] = [authority.issue(['10.0.0.1']), authority.issue(['10.0.0.2'])];
    const refs = { clientCertificateSecretRef: reference, clientKeySecretRef: reference };
    const tls = { caBundle: authority.text, ...refs };
    const compiled = (key: Buffer, caBundle = authority.text) =>
      destination(
        { http: { url: 'https://shop.example/hook', tls: { ...tls, caBundle } } },
        { clientCertificate: own.cert.toString(), clientKey: key.toString() },
      );
    const { record } = compiled(own.key);
    expect(httpSettings(record).tls?.ca).toBe(authority.text);
    const context = recordSealingContext(organization.id, 'destination', record?.id ?? '', 'clientKey');
    expect(keyring.open(httpSettings(record).tls?.clientKey ?? '', context)).toBe(own.key.toString());
    expect(compiled(other.key).refusal).toMatchObject({ reason: 'InvalidTls' });
    const broken = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n';
    expect(compiled(own.key, authority.text + broken).refusal).toMatchObject({ reason: 'InvalidTls' });
    authority.remove();
  });

  test('secrets of a source are sealed for it, and turn the check on', () => {
    const object = storedObject('Source', 'orders', { provider: 'github', signingSecretRef: reference }, 'acme');
    const { record } = compileSource(object, { organization, signingSecret: 'two words\n', keyring, published: null });
    if (record === undefined) throw new Error('refused');
    const context = recordSealingContext(organization.id, 'source', record.id, 'signingSecrets');
    expect(record.signingSecrets.map((sealed) => keyring.open(sealed, context))).toEqual(['two words']);
    expect(record.rejectInvalidSignatures).toBe(true);
  });

  test('secrets are requested only where the auth type needs them', () => {
    const { spec: full } = storedObject('Destination', 'shop', spec, 'acme');
    expect(destinationSecretReferences(full)).toEqual({ token: { name: 's', key: 't' } });
  });

  test.each(['', 'whsec_', 'whsec_dG9vIHNob3J0', 'plain', `${secret} plain`])('%j is refused as a signing secret', (value) => {
    expect(destination({ http: { url: 'https://shop.example/hook' } }, { signingSecrets: value }).refusal?.reason).toBe(
      'InvalidSigningSecret',
    );
  });

  test('two signing secrets are kept while a rotation lasts', () => {
    const { record } = destination({ http: { url: 'https://shop.example/hook' } }, { signingSecrets: `${secret} ${secret}` });
    expect(httpSettings(record).signingSecrets).toHaveLength(2);
  });
});

describe('the compile step refuses', () => {
  test('a destination whose credential is empty', () => {
    const spec: SpecInputOf<'Destination'> = {
      http: { url: 'https://shop.example/hook', auth: { type: 'bearer', tokenSecretRef: { name: 's', key: 't' } } },
    };
    expect(destination(spec, { token: '' }).refusal?.reason).toBe('InvalidAuth');
  });

  test.each([
    ['bearer', 'token', 'in\ntwo'],
    ['api_key', 'key', 'of 5 €'],
    ['custom_header', 'headerValue', 'nothing\0'],
  ] as const)('a destination whose credential of type %s no header can carry', (type, field, value) => {
    const auth = { type, ...(type !== 'bearer' && { headerName: 'X-Key' }), [`${field}SecretRef`]: { name: 's', key: 't' } };
    const refusal = { reason: 'InvalidAuth', message: expect.stringMatching(`spec.http.auth.${field}SecretRef must have no control`) };
    const spec = { http: { url: 'https://shop.example/hook', auth } };
    expect(destination(spec, { [field]: value })).toEqual({ refusal });
    for (const sendable of ['of a file\n', 'Ünïcode\tin Latin-1', 'x'.repeat(5000)])
      expect(destination(spec, { [field]: sendable }).refusal).toBeUndefined();
  });

  test.each([
    { field: 'a', operator: 'matches', value: '(' },
    { field: 'a', operator: 'in', value: 'not a list' },
    { field: 'a', operator: 'in', value: null },
    { field: 'a', operator: 'not_in', value: null },
  ] as const)('the condition %j', (condition) => {
    expect(compileFilterDefinition({ logic: 'AND', conditions: [{ ...condition }] }).refusal?.reason).toBe('InvalidFilter');
  });
});

test.each([
  ['free', 65_536],
  ['starter', 262_144],
  ['pro', 262_144],
  ['business', 1_048_576],
  ['enterprise', 1_048_576],
] as const)('plan %s takes payloads of %i bytes, unless the Organization says otherwise', (plan, bytes) => {
  expect(organizationFacts(storedObject('Organization', 'acme', { namespace: 'acme', plan })).payloadLimitBytes).toBe(bytes);
  const large = { namespace: 'acme', plan, limits: { payloadBytes: 26_214_400 } };
  expect(organizationFacts(storedObject('Organization', 'acme', large))).toMatchObject({
    payloadLimitBytes: 1_048_576,
    largePayloadLimitBytes: 26_214_400,
  });
  const limited = { namespace: 'acme', plan, limits: { payloadBytes: 2048 } };
  expect(organizationFacts(storedObject('Organization', 'acme', limited)).payloadLimitBytes).toBe(2048);
});

describe('below the plan that a destination needs it is suspended:', () => {
  const http = { url: 'https://shop.example/hook' };
  const s3 = { bucket: 'events', region: 'eu-central-1' };
  const warehouse = { type: 's3' as const, s3, warehouse: { identity: 'platform' as const } };
  const rate = { mode: 'rate' as const, rateLimit: 1, rateUnit: 'second' as const };
  test.each<[string, SpecInputOf<'Destination'>, Plan, Plan, string]>([
    ['a warehouse', warehouse, 'starter', 'pro', 'type s3 needs the plan pro or above; this organization has starter'],
    ['a rate', { http, throttle: rate }, 'free', 'starter', 'throttle mode rate needs a paid plan; this organization has free'],
    [
      'a concurrency',
      { http, throttle: { mode: 'concurrency', maxConcurrency: 1 } },
      'free',
      'starter',
      'throttle mode concurrency needs a paid plan; this organization has free',
    ],
    [
      'a static address',
      { http: { ...http, useStaticIp: true } },
      'free',
      'starter',
      'useStaticIp needs a paid plan; this organization has free',
    ],
  ])('%s', (_, spec, below, enough, message) => {
    expect(destination(spec, {}, below)).toMatchObject({
      record: { enabled: false, suspended: true },
      refusal: { reason: 'PlanTooLow', message },
    });
    const compiled = destination(spec, {}, enough);
    expect(compiled.record).toMatchObject({ enabled: true });
    expect(compiled.record).not.toHaveProperty('suspended');
    expect([isServing(kinds.Destination.spec.parse(spec), below), isServing(kinds.Destination.spec.parse(spec), enough)]).toEqual([
      false,
      true,
    ]);
    expect(compiled.refusal).toBeUndefined();
    expect(destination({ http, throttle: { mode: 'off' } }, {}, below).refusal).toBeUndefined();
  });
});

test('destinations spread over the shards, each always to the same', () => {
  const shards = Array.from({ length: 400 }, (_, i) => shardOf(`dst_${i}`, 16));
  expect(new Set(shards).size).toBe(16);
  expect(shardOf('dst_1', 16)).toBe(shards[1]);
});

describe('a warehouse', () => {
  const ref = { name: 's', key: 'k' };
  const serviceAccountKey = JSON.stringify({ client_email: 'a@b.example', private_key: 'canary-key' });
  const types = [
    {
      spec: { type: 's3', s3: { bucket: 'events', region: 'eu-central-1', accessKeyId: 'AKIA', secretAccessKeySecretRef: ref } },
      field: 'secretAccessKey',
      value: 'canary-key',
    },
    {
      spec: { type: 'r2', r2: { bucket: 'events', endpoint: 'https://a.r2.example', accessKeyId: 'a', secretAccessKeySecretRef: ref } },
      field: 'secretAccessKey',
      value: 'canary-key',
    },
    {
      spec: { type: 'gcs', gcs: { bucket: 'events', projectId: 'p', serviceAccountKeySecretRef: ref } },
      field: 'serviceAccountKey',
      value: serviceAccountKey,
    },
    {
      spec: { type: 'azure_blob', azureBlob: { accountName: 'events', containerName: 'all', accountKeySecretRef: ref } },
      field: 'accountKey',
      value: 'Y2FuYXJ5LWtleQ==',
    },
  ] as const;

  test.each(types)('a warehouse of type $spec.type has its settings, and its $field sealed', ({ spec, field, value }) => {
    expect(destinationSecretReferences(storedObject('Destination', 'shop', spec, 'acme').spec)).toEqual({ [field]: ref });
    const { record } = destination(spec, { [field]: value });
    if (record === undefined) throw new Error('refused');
    expect(JSON.stringify(record)).not.toContain(value);
    const [sealed = ''] = /[^"]*(?=")/.exec(JSON.stringify(record).split(`"${field}":"`)[1] ?? '') ?? [];
    expect(keyring.open(sealed, recordSealingContext(organization.id, 'destination', record.id, field))).toBe(value);
    const shown = JSON.parse(JSON.stringify(record).replace(sealed, 'sealed'));
    expect(shown).toMatchSnapshot();
  });

  test.each(types)('a warehouse of type $spec.type is sealed again only when its secret changes', ({ spec, field, value }) => {
    const object = storedObject('Destination', 'shop', spec, 'acme');
    const inputs = { organization, headers: [], shard: 0, keyring };
    const first = compileDestination(object, { ...inputs, secrets: { [field]: value }, published: null }).record ?? null;
    expect(compileDestination(object, { ...inputs, secrets: { [field]: value }, published: first }).record).toEqual(first);
  });

  test.each(types)('a warehouse of type $spec.type without a usable secret is refused', ({ spec, field }) => {
    for (const value of ['', field === 'secretAccessKey' ? ' ' : 'no such key!'])
      expect(destination(spec, { [field]: value }).refusal).toMatchObject({ reason: 'InvalidCredentials' });
  });

  test('a warehouse with an access key id that no header can carry is refused', () => {
    const s3 = { bucket: 'events', region: 'eu-central-1', accessKeyId: 'AKIA\n€', secretAccessKeySecretRef: { name: 's', key: 'k' } };
    expect(destination({ type: 's3', s3 }, { secretAccessKey: 'a' }).refusal).toEqual({
      reason: 'InvalidCredentials',
      message: 'spec.s3.accessKeyId must have no control characters and none beyond Latin-1',
    });
  });

  test('a warehouse with the identity of the platform needs and reads no secret', () => {
    const spec = { type: 's3', s3: { bucket: 'events', region: 'eu-central-1' }, warehouse: { identity: 'platform' } } as const;
    expect(destinationSecretReferences(storedObject('Destination', 'shop', spec, 'acme').spec)).toEqual({});
    expect(destination(spec).record).toMatchObject({ s3: { credentials: null } });
  });

  test('a warehouse of type r2 with the identity of the platform, from before that was a rule, is refused', () => {
    const secretAccessKeySecretRef = { name: 's', key: 'k' };
    const r2 = { bucket: 'events', endpoint: 'https://account.r2.example', accessKeyId: 'a', secretAccessKeySecretRef };
    const { spec } = storedObject('Destination', 'shop', { type: 'r2', r2, warehouse: {} }, 'acme');
    expect(warehouseRefusal(spec)).toBeNull();
    const before = { fileFormat: 'jsonl', partitionBy: 'date', identity: 'platform' } as const;
    expect(warehouseRefusal({ ...spec, warehouse: before })).toMatchObject({ reason: 'InvalidCredentials' });
  });

  test('a warehouse with a field mapping that cannot be read is refused', () => {
    const mapping = (source: string) => ({
      type: 's3' as const,
      s3: { bucket: 'events', region: 'eu-central-1' },
      warehouse: { identity: 'platform' as const, fieldMapping: [{ source, target: 'a', type: 'string' as const }] },
    });
    expect(destination(mapping('$.payload.id')).record).toMatchObject({ warehouse: { fieldMapping: [{ target: 'a' }] } });
    expect(destination(mapping('payload.id')).refusal).toMatchObject({
      reason: 'InvalidFieldMapping',
      message: expect.stringContaining('spec.warehouse.fieldMapping[0].source'),
    });
  });
});
