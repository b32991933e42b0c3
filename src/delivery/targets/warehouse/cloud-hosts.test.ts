import { createPublicKey, verify } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, jest, test } from '@jest/globals';
import {
  type CloudAnswer,
  type CloudHosts,
  type CloudRequest,
  mayListenOn443,
  startCloudHosts,
  storeAnswer,
} from '../../../../test/support/cloud-hosts.ts';
import { testKeyring } from '../../../../test/support/controllers.ts';
import { deliverySuite } from '../../../../test/support/delivery-suite.ts';
import { eventually } from '../../../../test/support/eventually.ts';
import { newEvent } from '../../../../test/support/new-event.ts';
import { organizationRecord, routeRecord, warehouseRecord } from '../../../../test/support/records.ts';
import { serviceAccountKey } from '../../../../test/support/service-account.ts';
import { awsAuthorization, azureAuthorization } from '../../../../test/support/store-signatures.ts';
import type { ObjectStoreRecord } from '../../../core/records.ts';
import { recordSealingContext, type SealedRecordField } from '../../../core/sealing-contexts.ts';

const names = [
  'events.s3.eu-central-1.amazonaws.com',
  'account.r2.cloudflarestorage.com',
  'storage.googleapis.com',
  'oauth2.googleapis.com',
  'acme.blob.core.windows.net',
];
const retryPolicy = { maxRetries: 5, initialDelayMs: 100, maxDelayMs: 200, backoffMultiplier: 1 };
const secretAccessKey = 'canary-secret-access-key';
const accountKey = Buffer.alloc(64, 'canary').toString('base64');
const account = serviceAccountKey();

const suite = deliverySuite();
let cloud: CloudHosts;
let tokens: number;
let refusedToken: string | null;

beforeAll(async () => {
  if (mayListenOn443) cloud = await startCloudHosts(names, answer);
});
afterAll(() => cloud?.stop());
beforeEach(() => {
  cloud?.requests.splice(0);
  tokens = 0;
  refusedToken = null;
  suite.registry.put('route', routeRecord({ circuit: { failureThreshold: 100, cooldownSeconds: 300, probeSuccessThreshold: 1 } }));
});
afterEach(() => {
  jest.restoreAllMocks();
});

function answer(request: CloudRequest): CloudAnswer {
  const { host, headers } = request;
  switch (host) {
    case 'oauth2.googleapis.com':
      return { body: { access_token: `canary-token-${++tokens}`, expires_in: 3600, token_type: 'Bearer' } };
    case 'storage.googleapis.com':
      if (headers.authorization === `Bearer ${refusedToken}`) return { status: 401, body: { error: { code: 401, message: 'no' } } };
      return storeAnswer(request);
    default:
      return storeAnswer(request);
  }
}

const sealed = (value: string, field: SealedRecordField): string =>
  testKeyring.seal(value, recordSealingContext('org_a', 'destination', 'dst_a', field));
const keys = () => ({ accessKeyId: 'AKIA', secretAccessKey: sealed(secretAccessKey, 'secretAccessKey') });
const gcs = (): ObjectStoreRecord => ({
  type: 'gcs',
  gcs: { bucket: 'events', projectId: 'p', credentials: { serviceAccountKey: sealed(account, 'serviceAccountKey') } },
});

function start(record: ObjectStoreRecord): void {
  suite.registry.put('destination', warehouseRecord(record, { prefix: 'raw' }, { retryPolicy }));
  suite.worker({ lookup: cloud.lookup, extraCa: cloud.authority.text, warehouse: { batchAgeMs: 50 } });
}
async function send(): Promise<string> {
  const event = newEvent({ payload: Buffer.from('{"order":7}') });
  await suite.acceptor.accept(event);
  return event.targets[0]?.messageId ?? '';
}
async function deliver(): Promise<void> {
  const id = await send();
  await eventually(async () => expect(await suite.reader.delivery('org_a', id)).toMatchObject({ status: 'delivered' }));
}
const at = (host: string): CloudRequest[] => cloud.requests.filter((request) => request.host === host);
/** The one request there was. */
function only(): CloudRequest {
  const [request] = cloud.requests;
  if (request === undefined || cloud.requests.length !== 1) throw new Error(`there were ${cloud.requests.length} requests`);
  return request;
}

const onlyWithPort443 = mayListenOn443 ? describe : describe.skip;

onlyWithPort443('a store under the name that it has at its cloud', () => {
  test('of type s3 has its bucket in the host, and its requests are signed for its region', async () => {
    start({ type: 's3', s3: { bucket: 'events', region: 'eu-central-1', credentials: keys() } });
    await deliver();
    const request = only();
    expect(request).toMatchObject({ method: 'PUT', host: 'events.s3.eu-central-1.amazonaws.com', path: expect.stringMatching(/^\/raw\//) });
    expect(request.body.toString()).toContain('"order":7');
    expect(request.headers.authorization).toBe(awsAuthorization(request, { accessKeyId: 'AKIA', secretAccessKey, region: 'eu-central-1' }));
  });

  test('of type r2 has its bucket in the path', async () => {
    start({ type: 'r2', r2: { bucket: 'events', endpoint: 'https://account.r2.cloudflarestorage.com', credentials: keys() } });
    await deliver();
    const request = only();
    expect(request).toMatchObject({
      method: 'PUT',
      host: 'account.r2.cloudflarestorage.com',
      path: expect.stringMatching(/^\/events\/raw\//),
    });
    expect(request.headers.authorization).toBe(awsAuthorization(request, { accessKeyId: 'AKIA', secretAccessKey, region: 'auto' }));
  });

  test('of type azure_blob has its account in the host, and its requests are signed with the key of the account', async () => {
    const credentials = { accountKey: sealed(accountKey, 'accountKey') };
    start({ type: 'azure_blob', azureBlob: { accountName: 'acme', containerName: 'events', credentials } });
    await deliver();
    const request = only();
    expect(request).toMatchObject({ method: 'PUT', host: 'acme.blob.core.windows.net', path: expect.stringMatching(/^\/events\/raw\//) });
    expect(request.body.toString()).toContain('"order":7');
    expect(request.headers.authorization).toBe(azureAuthorization(request, 'acme', accountKey));
  });
});

onlyWithPort443('a store of type gcs with the key of a service account', () => {
  test('requests a token as that account, uses it again, and prints nothing', async () => {
    const printed = [jest.spyOn(console, 'warn'), jest.spyOn(console, 'error'), jest.spyOn(process, 'emitWarning')];
    start(gcs());
    await deliver();
    await deliver();
    for (const spy of printed) expect(spy.mock.calls).toEqual([]);
    const asked = at('oauth2.googleapis.com');
    expect(asked).toHaveLength(1);
    expect(asked[0]).toMatchObject({ method: 'POST', path: '/token' });
    const form = new URLSearchParams(String(asked[0]?.body));
    expect(form.get('grant_type')).toBe('urn:ietf:params:oauth:grant-type:jwt-bearer');
    expect(claimsOf(form.get('assertion') ?? '')).toEqual({
      iss: 'a@b.example',
      aud: 'https://oauth2.googleapis.com/token',
      scope: 'https://www.googleapis.com/auth/devstorage.read_write',
      iat: expect.closeTo(Date.now() / 1000, -2),
      exp: expect.closeTo(Date.now() / 1000 + 3600, -2),
    });
    const uploads = at('storage.googleapis.com');
    expect(uploads.map(({ method, headers }) => [method, headers.authorization])).toEqual(
      ['POST', 'PUT', 'POST', 'PUT'].map((method) => [method, 'Bearer canary-token-1']),
    );
    expect(uploads[0]?.path).toMatch(/^\/upload\/storage\/v1\/b\/events\/o\?.*name=raw%2F/);
    expect(String(uploads[1]?.body)).toContain('"order":7');
  });

  test('requests another token when the one that it has is refused', async () => {
    start(gcs());
    await deliver();
    refusedToken = 'canary-token-1';
    await deliver();
    expect(at('storage.googleapis.com').at(-1)?.headers.authorization).toBe('Bearer canary-token-2');
  });

  test('does not ask at an address that is not allowed', async () => {
    suite.registry.put('organization', organizationRecord({ egress: { allowedCidrs: [], allowedHosts: [] } }));
    start(gcs());
    const id = await send();
    await eventually(async () => expect(await suite.reader.delivery('org_a', id)).toMatchObject({ lastErrorType: 'blocked' }));
    expect(cloud.requests).toEqual([]);
  });
});

/** Throws when the account has not signed them. */
function claimsOf(assertion: string): unknown {
  const [head = '', claims = '', signature = ''] = assertion.split('.');
  const { private_key: key }: { private_key: string } = JSON.parse(account);
  const isSigned = verify('RSA-SHA256', Buffer.from(`${head}.${claims}`), createPublicKey(key), Buffer.from(signature, 'base64url'));
  if (!isSigned) throw new Error('the signature of the assertion is wrong');
  return JSON.parse(Buffer.from(claims, 'base64url').toString());
}
