import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import { parseAllDocuments } from 'yaml';
import { consoleSteps } from './support/console-steps.ts';
import { eventually } from './support/eventually.ts';
import { freePort } from './support/ports.ts';
import { type ServerProcess, spawnServer } from './support/server-process.ts';

// biome-ignore lint/suspicious/noExplicitAny: objects of many kinds
type Any = any;

const root = new URL('../', import.meta.url).pathname;
const objects: Any[] = globSync('config/samples/quickstart-cluster/*.yaml', { cwd: root })
  .sort()
  .flatMap((file) => parseAllDocuments(readFileSync(root + file, 'utf8')).map((document) => document.toJS()));
const only = (kind: string): Any => objects.find((object) => object.kind === kind);
const secret: string = only('Secret').stringData.signingSecret;

describe('the quickstart for clusters', () => {
  test('the namespace is created before what it holds', () => {
    expect(objects[0]).toMatchObject({ kind: 'Namespace', metadata: { name: 'quickstart' } });
    expect(objects.filter(({ metadata }) => metadata.namespace !== undefined && metadata.namespace !== 'quickstart')).toEqual([]);
  });

  test('the source and the destinations are created before the routes that name them', () => {
    const kindsInOrder = objects.map(({ kind }) => kind);
    expect(kindsInOrder.lastIndexOf('Destination')).toBeLessThan(kindsInOrder.indexOf('Route'));
    expect(kindsInOrder.lastIndexOf('Source')).toBeLessThan(kindsInOrder.indexOf('Route'));
  });

  test('the destinations name the Service of the receiver, and its organization allows that host', () => {
    const { metadata, spec } = only('Service');
    const [deployment] = objects.filter(({ kind }) => kind === 'Deployment');
    expect(deployment.spec.template.metadata.labels).toEqual(spec.selector);
    const host = `${metadata.name}.${metadata.namespace}.svc.cluster.local`;
    const urls = objects.filter(({ kind }) => kind === 'Destination').map((object) => new URL(object.spec.http.url));
    expect(urls.map((url) => [url.hostname, url.port || '80'])).toEqual(urls.map(() => [host, String(spec.ports[0].port)]));
    expect(only('Organization').spec.egress.allowedHosts).toEqual([host]);
  });

  test('README and the install page apply it', () => {
    for (const [page, heading] of [['README.md', 'In Kubernetes']] as const)
      expect(consoleSteps(page, heading)).toContain('kubectl apply -f config/samples/quickstart-cluster');
    expect(readFileSync(`${root}docs/install.md`, 'utf8')).toContain('kubectl apply -f config/samples/quickstart-cluster\n');
  });
});

describe('the receiver of the quickstart for clusters', () => {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-quickstart-'));
  let receiver: ServerProcess;
  let url: string;

  beforeAll(async () => {
    const port = await freePort();
    url = `http://127.0.0.1:${port}/orders`;
    for (const [file, text] of Object.entries<string>(only('ConfigMap').data)) writeFileSync(join(folder, file), text);
    const environment = { SIGNING_SECRET: secret, PORT: String(port) };
    receiver = spawnServer(process.execPath, [join(folder, 'receiver.mjs')], folder, environment);
    await eventually(() => expect(receiver.lastOutput()).toContain('listening'));
  });
  afterAll(async () => {
    await receiver?.stop('SIGTERM');
    rmSync(folder, { recursive: true, force: true });
  });

  const deliver = async (body: string, at: Date, signature: string): Promise<number> => {
    const headers = { 'webhook-id': 'msg_1', 'webhook-timestamp': String(Math.floor(at.getTime() / 1000)), 'webhook-signature': signature };
    return (await fetch(url, { method: 'POST', headers, body })).status;
  };

  test.each(['{"order":7,"total":1200}', 'no JSON', ''])(
    'the receiver of the quickstart for clusters accepts %j with the signature of another implementation',
    async (body) => {
      const now = new Date();
      expect(await deliver(body, now, new Webhook(secret).sign('msg_1', now, body))).toBe(200);
      await eventually(() => expect(receiver.lastOutput()).toContain(`received POST /orders webhook-id=msg_1 signature=valid ${body}`));
    },
  );

  test('the receiver of the quickstart for clusters refuses a wrong signature, and one that is too old', async () => {
    const old = new Date(Date.now() - 3_600_000);
    expect(await deliver('{}', new Date(), 'v1,AAAA')).toBe(401);
    expect(await deliver('{}', old, new Webhook(secret).sign('msg_1', old, '{}'))).toBe(401);
  });
});
