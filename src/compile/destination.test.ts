import { randomBytes } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { createCertificateAuthority } from '../../test/support/certificate-authority.ts';
import { encryptedKey, rsaKeyOfBits } from '../../test/support/costly-keys.ts';
import { storedObject } from '../../test/support/objects.ts';
import { withinProcessorTime } from '../../test/support/short-work.ts';
import { newSigningKey } from '../core/ed25519-keys.ts';
import { Keyring } from '../core/sealing.ts';
import { recordSealingContext } from '../core/sealing-contexts.ts';
import type { SpecInputOf } from '../resources/kinds.ts';
import { compileDestination } from './destination.ts';
import { organizationFacts } from './organization.ts';
import { compileSource } from './source.ts';

const inputs = {
  organization: organizationFacts(storedObject('Organization', 'acme', { namespace: 'acme' })),
  secrets: {},
  headers: [],
  shard: 0,
  keyring: new Keyring([{ id: 'k1', key: randomBytes(32) }]),
  published: null,
};
const compiled = (spec: SpecInputOf<'Destination'>) => compileDestination(storedObject('Destination', 'shop', spec, 'acme'), inputs);
const url = 'https://shop.example/hook';

test('a Destination with delays of its own has as many retries', () => {
  const spec = { http: { url }, retryPolicy: { maxRetries: 7, delaysMs: [5000, 60_000, 60_000] } };
  expect(compiled(spec)).toMatchObject({ record: { retryPolicy: { maxRetries: 3, delaysMs: [5000, 60_000, 60_000] } } });
});

describe('a Destination that signs', () => {
  const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
  const [key, oldKey] = [newSigningKey(), newSigningKey()] as const;
  const signingSecretRef = { name: 'signing', key: 'secret' };
  const object = (http: object) => storedObject('Destination', 'shop', { http: { url, signingSecretRef, ...http } }, 'acme');
  const signing = (signingSecrets: string, http: object = {}) =>
    compileDestination(object(http), { ...inputs, secrets: { signingSecrets } });
  const opened = ({ record }: ReturnType<typeof signing>): string[] => {
    if (record?.type !== 'http') throw new Error('it is refused');
    const context = recordSealingContext(record.org, 'destination', record.id, 'signingSecrets');
    return record.http.signingSecrets.map((sealed) => inputs.keyring.open(sealed, context));
  };

  test.each<[object, string[]]>([
    [{}, [secret]],
    [{ signatureScheme: 'hmac-sha256' }, [secret]],
    [{ signatureScheme: 'ed25519' }, [key, oldKey]],
    [{ signatureScheme: 'both' }, [secret, key, oldKey]],
  ])('a Destination that signs with %j has the secrets and keys of its scheme in the record, and no others', (http, expected) => {
    expect(opened(signing(`${key} ${secret} ${oldKey}`, http))).toEqual(expected);
  });

  test('a Destination that signs as before has the record that it had before', () => {
    const { record } = signing(secret);
    expect(compileDestination(object({}), { ...inputs, secrets: { signingSecrets: secret }, published: record ?? null }).record).toEqual(
      record,
    );
    expect(JSON.stringify(record)).not.toContain('signatureScheme');
  });

  test.each<[string, object, string]>([
    [key, {}, 'contains no whsec_ secret, which signatureScheme hmac-sha256 needs'],
    [secret, { signatureScheme: 'ed25519' }, 'contains no whsk_ key, which signatureScheme ed25519 needs'],
    ['whsk_AAAA', { signatureScheme: 'ed25519' }, 'contains a whsk_ key that is not'],
  ])('a Destination that signs with %.6s… is refused with %j', (value, http, why) => {
    const message = expect.stringContaining(`the value behind spec.http.signingSecretRef ${why}`);
    expect(signing(value, http).refusal).toEqual({ reason: 'InvalidSigningSecret', message });
  });

  test('a Destination that signs needs a Secret for another scheme than the default', () => {
    expect(compiled({ http: { url, signatureScheme: 'both' } }).refusal).toEqual({
      reason: 'Incomplete',
      message: 'spec.http.signatureScheme both needs spec.http.signingSecretRef',
    });
    expect(compiled({ http: { url, signatureScheme: 'hmac-sha256' } }).refusal).toBeUndefined();
  });
});

test('a Destination has the headers that it forwards in lower case, an empty list as well', () => {
  const listed = (forwardHeaders: string[]) => compiled({ http: { url, forwardHeaders } }).record;
  expect(listed(['X-GitHub-Event', 'x-b'])).toMatchObject({ http: { forwardHeaders: ['x-github-event', 'x-b'] } });
  expect(listed([])).toMatchObject({ http: { forwardHeaders: [] } });
  expect(compiled({ http: { url } }).record).not.toHaveProperty('http.forwardHeaders');
});

test('a Destination has its header templates as they are, and is refused when one takes a credential of the sender', () => {
  const templated = (...headerTemplates: { name: string; template: string }[]) => compiled({ http: { url, headerTemplates } });
  const template = { name: 'X-Topic', template: '{{ headers.X-Topic }}' };
  expect(templated(template).record).toMatchObject({ http: { headerTemplates: [template] } });
  for (const spec of [{ url }, { url, headerTemplates: [] }])
    expect(compiled({ http: spec }).record).not.toHaveProperty('http.headerTemplates');
  expect(templated(template, { name: 'X-A', template: 'a {{ headers.X-Api-Key }}' }).refusal).toEqual({
    reason: 'InvalidHeader',
    message: expect.stringContaining('header X-A in spec.http.headerTemplates must not take the header x-api-key of the event'),
  });
});

test('a Destination is ordered when its spec requests it', () => {
  expect(compiled({ http: { url }, ordered: true }).record).toMatchObject({ ordered: true });
  for (const spec of [{ http: { url } }, { http: { url }, ordered: false }]) expect(compiled(spec).record).not.toHaveProperty('ordered');
});

test('a Destination has the payload form thin when its spec requests it', () => {
  expect(compiled({ http: { url, payloadForm: 'thin' } }).record).toMatchObject({ http: { payloadForm: 'thin' } });
  for (const form of [undefined, 'full'] as const)
    expect(compiled({ http: { url, payloadForm: form } }).record).not.toHaveProperty('http.payloadForm');
});

describe('a private key that takes long to read or to sign with is refused:', () => {
  const ref = { name: 's', key: 'k' };
  const withSecrets = (spec: SpecInputOf<'Destination'>, secrets: object) =>
    compileDestination(storedObject('Destination', 'shop', spec, 'acme'), { ...inputs, secrets }).refusal;

  test.each<[what: string, key: () => string, problem: RegExp]>([
    ['an encrypted key', () => encryptedKey(0x7fff), /clientKeySecretRef is an encrypted key/],
    ['an RSA key of 8192 bits', () => rsaKeyOfBits(8192), /clientKeySecretRef is an RSA key of more than 4096 bits/],
  ])('%s of a client', (_, key, problem) => {
    const authority = createCertificateAuthority();
    const clientCertificate = authority.issue(['10.0.0.1']).cert.toString();
    authority.remove();
    const tls = { clientCertificateSecretRef: ref, clientKeySecretRef: ref };
    expect(withSecrets({ http: { url, tls } }, { clientCertificate, clientKey: key() })).toEqual({
      reason: 'InvalidTls',
      message: expect.stringMatching(problem),
    });
  });

  test('an RSA key of 8192 bits of a service account', () => {
    const gcs = { bucket: 'events', projectId: 'p', serviceAccountKeySecretRef: ref };
    const serviceAccountKey = JSON.stringify({ client_email: 'a@b.example', private_key: rsaKeyOfBits(8192) });
    expect(withSecrets({ type: 'gcs', gcs }, { serviceAccountKey })).toEqual({
      reason: 'InvalidCredentials',
      message: expect.stringContaining('is an RSA key of more than 4096 bits'),
    });
  });
});

test('a Destination and a Source refuse a Secret with thousands of signing secrets at once, and take one with ten', () => {
  const secret = (i: number): string => `whsec_${Buffer.alloc(24, i).toString('base64')}`;
  const listed = (count: number): string => Array.from({ length: count }, (_, i) => secret(i % 256)).join(' ');
  const ofDestination = (signingSecrets: string) => {
    const http = { url, signingSecretRef: { name: 'signing', key: 'secret' } };
    return compileDestination(storedObject('Destination', 'shop', { http }, 'acme'), { ...inputs, secrets: { signingSecrets } });
  };
  const ofSource = (signingSecret: string) => {
    const object = storedObject('Source', 'in', { provider: 'standard-webhooks' }, 'acme');
    return compileSource(object, { organization: inputs.organization, signingSecret, keyring: inputs.keyring, published: null });
  };
  for (const compile of [ofDestination, ofSource]) {
    expect(compile(listed(10)).refusal).toBeUndefined();
    const [eleven, many] = [listed(11), listed(25_000)];
    expect(compile(eleven).refusal).toMatchObject({ reason: 'InvalidSigningSecret' });
    expect(withinProcessorTime(() => compile(many)).refusal?.message).toContain('contains more than 10 secrets and keys');
  }
});
