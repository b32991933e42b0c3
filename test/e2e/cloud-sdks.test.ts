import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { freePort } from '../support/ports.ts';
import { type Program, programSource, startProgram } from '../support/program.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { RestClient } from './rest.ts';

const hook = new URL('../support/note-modules.ts', import.meta.url).href;
const directory = mkdtempSync(join(tmpdir(), 'posthorn-e2e-'));
const modules = join(directory, 'modules');
let receiver: Receiver;
let program: Program;
let rest: RestClient;

beforeAll(async () => {
  mkdirSync(modules);
  receiver = await startReceiver((response) => void response.writeHead(403).end());
  const port = await freePort();
  const environment = {
    POSTHORN_PORT: String(port),
    POSTHORN_DATA_DIR: join(directory, 'data'),
    POSTHORN_WAREHOUSE_S3_ENDPOINT: receiver.url,
    POSTHORN_TEST_MODULES: modules,
    NODE_OPTIONS: `--import=${hook}`,
  };
  program = startProgram(['standalone'], environment, programSource);
  const [, url = '', key = ''] = await program.waitForOutput(/^posthorn ready (\S+) key (\S+)$/m, 60_000);
  rest = new RestClient(url, key);
});
afterAll(async () => {
  await program?.stop();
  await receiver?.close();
  rmSync(directory, { recursive: true, force: true });
});

/** The packages that the process of a role has loaded. */
function packagesOf(role: string): Set<string> {
  const loaded = readFileSync(join(modules, `posthorn.ts ${role}`), 'utf8');
  return new Set([...loaded.matchAll(/\/node_modules\/((?:@[^/\n]+\/)?[^/\n]+)\/(?!node_modules\/)/g)].map(([, name = '']) => name));
}

function cloudPackagesOf(role: string): string[] {
  return [...packagesOf(role)].filter((name) =>
    /^(@aws-sdk|@aws|@smithy|@azure|@azure-rest|@google-cloud)\/|^google-auth-library$/.test(name),
  );
}

async function testDestination(destination: object): Promise<void> {
  const { status, body } = await rest.send('POST', '/api/destinations', destination);
  expect(status).toBe(201);
  expect(await rest.send('POST', `/api/destinations/${body.id}/test`)).toMatchObject({ status: 200, body: { success: false } });
}

test('no process loads the SDK of a cloud before a destination there is used, and then a worker loads that one alone', async () => {
  await testDestination({ name: 'Shop', url: `${receiver.url}/hooks` });
  for (const role of ['standalone', 'api', 'ingest', 'controller', 'delivery']) {
    expect([role, ...packagesOf(role)]).toContain('ioredis');
    expect([role, ...cloudPackagesOf(role)]).toEqual([role]);
  }
  const config = { bucket: 'acme-events', region: 'eu-central-1', accessKeyId: 'AKIA1', secretAccessKey: 'canary-s3-key' };
  await testDestination({ name: 'Lake', type: 's3', config });
  expect(cloudPackagesOf('delivery')).toContain('@aws-sdk/client-s3');
  expect(cloudPackagesOf('delivery').filter((name) => !/^@(aws|aws-sdk|smithy)\//.test(name))).toEqual([]);
  for (const role of ['standalone', 'api', 'ingest', 'controller']) expect([role, ...cloudPackagesOf(role)]).toEqual([role]);
});

test('the api loads nothing that takes events', () => {
  const loaded = readFileSync(join(modules, 'posthorn.ts api'), 'utf8');
  expect(loaded).toContain('/src/facade/app.ts');
  expect(loaded).not.toMatch(/\/src\/ingest\/(handler|request|providers)/);
});

test('ingest loads nothing that connects to Kubernetes, and none of the API', () => {
  const loaded = readFileSync(join(modules, 'posthorn.ts ingest'), 'utf8');
  expect(loaded).toContain('/src/ingest/handler.ts');
  expect(loaded).not.toMatch(/\/node_modules\/(@kubernetes|express)\/|\/src\/(store|controllers|facade\/families)\//);
});
