import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import {
  type CloudAnswer,
  type CloudHosts,
  type CloudRequest,
  mayListenOn443,
  startCloudHosts,
  storeAnswer,
} from '../../../../test/support/cloud-hosts.ts';
import { startProgram } from '../../../../test/support/program.ts';
import { type ReceivedRequest, type Receiver, startReceiver } from '../../../../test/support/receiver.ts';
import { awsAuthorization } from '../../../../test/support/store-signatures.ts';
import type { ObjectStoreRecord } from '../../../core/records.ts';

const script = new URL('../../../../test/support/platform-upload.ts', import.meta.url).pathname;
const s3Host = 'events.s3.eu-central-1.amazonaws.com';
const names = [
  s3Host,
  'sts.eu-central-1.amazonaws.com',
  'storage.googleapis.com',
  'acme.blob.core.windows.net',
  'login.microsoftonline.com',
];
const lent = { accessKeyId: 'ASIALENT', secretAccessKey: 'canary-lent-key', region: 'eu-central-1' };
const expiration = '2099-01-01T00:00:00Z';
const podToken = 'header.claims-of-the-pod.signature';
const bearer = { access_token: 'canary-token', expires_in: 3600, ext_expires_in: 3600, token_type: 'Bearer' };

let cloud: CloudHosts;
/** Servers on the node of a pod: the metadata server of GKE, the agent of EKS. */
let node: Receiver;
let home: string;
let tokenFile: string;

beforeAll(async () => {
  if (mayListenOn443) cloud = await startCloudHosts(names, answer);
  node = await startReceiver((response, _, request) => response.setHeader('metadata-flavor', 'Google').end(nodeAnswer(request)));
  home = mkdtempSync(join(tmpdir(), 'posthorn-identity-'));
  tokenFile = join(home, 'token');
  writeFileSync(tokenFile, podToken);
});
afterAll(async () => {
  await Promise.all([cloud?.stop(), node?.close()]);
  rmSync(home, { recursive: true, force: true });
});
beforeEach(() => {
  cloud?.requests.splice(0);
  node.requests.splice(0);
});

function answer(request: CloudRequest): CloudAnswer {
  const { host, path } = request;
  switch (host) {
    case 'sts.eu-central-1.amazonaws.com':
      return { headers: { 'content-type': 'text/xml' }, body: assumedRole };
    case 'login.microsoftonline.com':
      return { body: path.includes('/oauth2/v2.0/token?') ? bearer : openIdConfiguration };
    default:
      return storeAnswer(request);
  }
}

const assumedRole = `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult>
<Credentials><AccessKeyId>${lent.accessKeyId}</AccessKeyId><SecretAccessKey>${lent.secretAccessKey}</SecretAccessKey>
<SessionToken>canary-session</SessionToken><Expiration>${expiration}</Expiration></Credentials>
</AssumeRoleWithWebIdentityResult><ResponseMetadata><RequestId>a</RequestId></ResponseMetadata></AssumeRoleWithWebIdentityResponse>`;

const authority = 'https://login.microsoftonline.com/tenant-a';
const openIdConfiguration = {
  tenant_discovery_endpoint: `${authority}/v2.0/.well-known/openid-configuration`,
  metadata: [
    {
      preferred_network: 'login.microsoftonline.com',
      preferred_cache: 'login.microsoftonline.com',
      aliases: ['login.microsoftonline.com'],
    },
  ],
  issuer: `${authority}/v2.0`,
  authorization_endpoint: `${authority}/oauth2/v2.0/authorize`,
  token_endpoint: `${authority}/oauth2/v2.0/token`,
  jwks_uri: `${authority}/discovery/v2.0/keys`,
};

function nodeAnswer({ path }: ReceivedRequest): string {
  if (path.startsWith('/v1/credentials')) {
    const { accessKeyId: AccessKeyId, secretAccessKey: SecretAccessKey } = lent;
    return JSON.stringify({ AccessKeyId, SecretAccessKey, Token: 'canary-session', Expiration: expiration });
  }
  return path.includes('/service-accounts/default/token') ? JSON.stringify(bearer) : path.includes('universe') ? 'googleapis.com' : '{}';
}

/** Two uploads by a process with this environment alone; its output. */
async function upload(store: ObjectStoreRecord, environment: Record<string, string>): Promise<string> {
  const own = { HOME: home, NODE_EXTRA_CA_CERTS: cloud.authority.file, ...environment };
  const program = startProgram([JSON.stringify(store), cloud.address], own, script);
  const timer = setTimeout(() => void program.stop(), 60_000);
  await program.ended;
  clearTimeout(timer);
  return program.output();
}
const taken = 'raw/first 200 null\nraw/second 200 null\n';
const at = (host: string): CloudRequest[] => cloud.requests.filter((request) => request.host === host);
function expectSignedAsLent(): void {
  expect(at(s3Host).map(({ headers }) => headers['x-amz-security-token'])).toEqual(['canary-session', 'canary-session']);
  for (const request of at(s3Host)) expect(request.headers.authorization).toBe(awsAuthorization(request, lent));
}

const s3: ObjectStoreRecord = { type: 's3', s3: { bucket: 'events', region: 'eu-central-1', credentials: null } };
const gcs: ObjectStoreRecord = { type: 'gcs', gcs: { bucket: 'events', projectId: 'p', credentials: null } };
const azure: ObjectStoreRecord = { type: 'azure_blob', azureBlob: { accountName: 'acme', containerName: 'events', credentials: null } };

(mayListenOn443 ? describe : describe.skip)('the identity of a pod, asked for once and used for two uploads', () => {
  test('a role of EKS is one that STS lends for the token of the service account', async () => {
    const environment = {
      AWS_ROLE_ARN: 'arn:aws:iam::123456789012:role/posthorn',
      AWS_WEB_IDENTITY_TOKEN_FILE: tokenFile,
      AWS_REGION: 'eu-central-1',
      AWS_DEFAULT_REGION: 'eu-central-1',
      AWS_STS_REGIONAL_ENDPOINTS: 'regional',
    };
    expect(await upload(s3, environment)).toBe(taken);
    const asked = at('sts.eu-central-1.amazonaws.com');
    expect(asked).toHaveLength(1);
    expect(Object.fromEntries(new URLSearchParams(String(asked[0]?.body)))).toMatchObject({
      Action: 'AssumeRoleWithWebIdentity',
      RoleArn: environment.AWS_ROLE_ARN,
      WebIdentityToken: podToken,
    });
    expectSignedAsLent();
  });

  test('a Pod Identity of EKS is what the agent of the node lends', async () => {
    const environment = {
      AWS_CONTAINER_CREDENTIALS_FULL_URI: `${node.url}/v1/credentials`,
      AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: tokenFile,
      AWS_REGION: 'eu-central-1',
    };
    expect(await upload(s3, environment)).toBe(taken);
    expect(node.requests.map(({ path, headers }) => [path, headers.authorization])).toEqual([['/v1/credentials', podToken]]);
    expectSignedAsLent();
  });

  test('a token of GKE comes from the metadata server', async () => {
    expect(await upload(gcs, { GCE_METADATA_HOST: new URL(node.url).host })).toBe(taken);
    const asked = node.requests.filter(({ path }) => path.startsWith('/computeMetadata/v1/instance/service-accounts/default/token'));
    expect(asked.map(({ headers }) => headers['metadata-flavor'])).toEqual(['Google']);
    expect(at('storage.googleapis.com').map(({ method, headers }) => [method, headers.authorization])).toEqual(
      ['POST', 'PUT', 'POST', 'PUT'].map((method) => [method, 'Bearer canary-token']),
    );
  });

  test('a token of AKS comes from Entra, for the token of the service account', async () => {
    const environment = {
      AZURE_TENANT_ID: 'tenant-a',
      AZURE_CLIENT_ID: 'client-a',
      AZURE_FEDERATED_TOKEN_FILE: tokenFile,
      AZURE_AUTHORITY_HOST: 'https://login.microsoftonline.com/',
    };
    expect(await upload(azure, environment)).toBe(taken);
    const asked = at('login.microsoftonline.com').filter(({ method }) => method === 'POST');
    expect(asked.map(({ path }) => path.split('?')[0])).toEqual(['/tenant-a/oauth2/v2.0/token']);
    expect(Object.fromEntries(new URLSearchParams(String(asked[0]?.body)))).toMatchObject({
      client_id: 'client-a',
      client_assertion: podToken,
      grant_type: 'client_credentials',
      scope: 'https://storage.azure.com/.default',
    });
    expect(at('acme.blob.core.windows.net').map(({ path, headers }) => [path, headers.authorization])).toEqual(
      ['/events/raw/first', '/events/raw/second'].map((path) => [path, 'Bearer canary-token']),
    );
  });
});
