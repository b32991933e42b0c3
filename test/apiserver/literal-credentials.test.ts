import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { parseAllDocuments } from 'yaml';
import { isCredentialHeader } from '../../src/core/credential-names.ts';
import { type ControlPlane, kubernetesAssets, startControlPlane } from '../support/control-plane.ts';
import { eventually } from '../support/eventually.ts';

// biome-ignore lint/suspicious/noExplicitAny: objects of many kinds
type Any = any;
type Kind = 'Destination' | 'HttpCronJob' | 'WebhookEndpoint';

let plane: ControlPlane;

beforeAll(async () => {
  plane = await startControlPlane({ crds: true });
  // Stored before there was the policy.
  await run(destinationWith([{ name: 'Authorization', value: 'Bearer in-clear' }], 'before'), 'apply', '--server-side', '-f', '-');
  const text = readFileSync(new URL('../../config/policies/literal-credentials.yaml', import.meta.url), 'utf8');
  for (const document of parseAllDocuments(text)) {
    const object: Any = document.toJS();
    const plural = object.kind === 'ValidatingAdmissionPolicy' ? 'validatingadmissionpolicies' : 'validatingadmissionpolicybindings';
    await plane.request('POST', `/apis/admissionregistration.k8s.io/v1/${plural}`, object);
  }
  await eventually(async () => expect(await warningOf('Destination', [{ name: 'Authorization', value: 'x' }])).not.toBe(''), 60_000);
}, 120_000);
afterAll(() => plane?.stop());

const url = 'https://shop.example.com/';
const valueSecretRef = { name: 'a', key: 'b' };
const specs: Record<Kind, (headers: object[]) => object> = {
  Destination: (headers) => ({ http: { url, headers } }),
  HttpCronJob: (headers) => ({ schedule: '0 * * * *', url, headers }),
  WebhookEndpoint: (headers) => ({ applicationRef: { name: 'a' }, url, signingSecretRef: valueSecretRef, headers }),
};
const objectOf = (kind: Kind, headers: object[], name = 'tried') => ({
  apiVersion: 'posthorn.dev/v1alpha1',
  kind,
  metadata: { name, namespace: 'default' },
  spec: specs[kind](headers),
});
const destinationWith = (headers: object[], name: string) => objectOf('Destination', headers, name);

/** Runs kubectl with the object as its input; returns its stderr. Throws when the object is refused. */
function run(object: object, ...args: string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = execFile(join(kubernetesAssets(), 'kubectl'), [`--kubeconfig=${plane.kubeconfigPath}`, ...args], (error, _, complaint) =>
      error === null ? resolve(complaint.trim()) : reject(new Error(complaint)),
    );
    child.stdin?.end(JSON.stringify(object));
  });
}

const warningOf = (kind: Kind, headers: object[]): Promise<string> =>
  run(objectOf(kind, headers), 'apply', '--server-side', '--dry-run=server', '-f', '-');

test.each<[Kind, string]>([
  ['Destination', 'spec.http.headers'],
  ['HttpCronJob', 'spec.headers'],
  ['WebhookEndpoint', 'spec.headers'],
])('a user who writes a %s with a credential in clear is warned, and it is accepted', async (kind, path) => {
  const headers = [
    { name: 'X-Team', value: 'shop' },
    { name: 'Authorization', value: 'Bearer in-clear' },
    { name: 'x-api-key', value: 'also-in-clear' },
    { name: 'X-Auth-Token', valueSecretRef },
    { name: 'Cookie', value: '' },
  ];
  const warning = await warningOf(kind, headers);
  expect(warning).toMatch(/^Warning: /);
  expect(warning).toContain(`${path}: the value of Authorization, x-api-key is a credential in clear`);
  expect(warning).toContain('valueSecretRef');
  expect(warning).not.toContain('in-clear');
  expect(await warningOf(kind, headers.slice(3))).toBe('');
  expect(await warningOf(kind, [])).toBe('');
});

test('a destination without http is taken without a word', async () => {
  const spec = { type: 's3', s3: { bucket: 'history', region: 'eu-west-1' }, warehouse: { identity: 'platform' } };
  expect(await run({ ...destinationWith([], 's3'), spec }, 'apply', '--server-side', '--dry-run=server', '-f', '-')).toBe('');
});

test('a resource that was stored with a credential in clear can be changed and deleted', async () => {
  expect(await run({}, 'label', 'destination', 'before', 'a=b')).toContain('Warning: ');
  expect(await run({}, 'delete', 'destination', 'before')).toBe('');
});

const names = [
  ...['Authorization', 'X-Forwarded-Authorization', 'Cookie', 'Set-Cookie2', 'X-Credential', 'X-Credentials', 'X-My-Jwt', 'X-Bearer'],
  ...['X-Passphrase', 'X-Passwd', 'X-DB_Password', 'X-Webhook-Secret', 'X-Session-Id', 'Private-Token', 'X-Access-Key', 'X-Api-Key'],
  ...['X_Api_Key', 'X.Api.Key', 'xApiKey', 'X-Secret-Key', 'X-CSRF', 'X-XSRF', 'X-Access-Signature', 'X-Access-Code', 'X-Auth', 'xAuth'],
  ...['X-Key', 'X-Otp', 'X-Pass', 'X-Pin', 'X-Pwd', 'X-Session', 'X-Sid', 'apiKey', 'Key', 'Monkey', 'Compass', 'Spin', 'X-Author'],
  ...['Idempotency-Key', 'IdempotencyKey', 'X-Routing-Key', 'X-Partition-Key', 'X-Cache-Key', 'X-Next-Token', 'X-Page-Token', 'X-Team'],
  ...['I-Twilio-Idempotency-Token', 'X-WebSocket-Key', 'X-Hub-Signature-256', 'X-Signature-Jwt', 'X-Keynote', 'X-Tokens', 'X-User-Id'],
  ...['Content-Type', 'X-Public-Key', 'X-Trace-Token', 'X-Event-Key', 'X-Secret-Name', 'X-Codeword', 'X-Authenticated', 'Signature-JWT'],
];

test('the policy has the same names of credentials as the API and the controllers', async () => {
  const warned: string[] = [];
  for (let at = 0; at < names.length; at += 10) {
    const some = names.slice(at, at + 10);
    const warning = await warningOf(
      'Destination',
      some.map((name) => ({ name, value: 'x' })),
    );
    warned.push(...(/the value of (.*) is a credential/.exec(warning)?.[1]?.split(', ') ?? []));
  }
  expect(warned).toEqual(names.filter((name) => isCredentialHeader(name)));
});
