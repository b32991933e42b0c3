import { createHmac } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { BlobServiceClient, StorageSharedKeyCredential } from '@azure/storage-blob';
import { onFreePort } from './ports.ts';
import { type ServerProcess, spawnServer } from './server-process.ts';

/** Where `hack/test` has installed the servers. */
const installed =
  process.env['POSTHORN_OBJECT_STORES'] ?? join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'posthorn/object-stores');

/** A server of an object store with one bucket or container. */
export interface StoreServer {
  readonly url: string;
  readonly bucket: string;
  /** Key → content of every object, as they are in the store now. */
  objects(): Promise<Map<string, Buffer>>;
  /** Ends the server; its objects stay. */
  halt(): Promise<void>;
  /** Starts it again at the same address. */
  resume(): Promise<void>;
  stop(): Promise<void>;
}

export const s3Keys = { accessKeyId: 'posthorn-test', secretAccessKey: 'canary-s3-secret-access-key' };
const account = 'posthorntest';
const accountKey = createHmac('sha256', 'canary').update('azure').digest('base64');
export const azureAccount = { accountName: account, accountKey };
const bucket = 'events';

/** Versity's S3 gateway on a directory. With `tls` it speaks https. */
export async function startS3Server({
  tls,
  region = 'us-east-1',
}: {
  tls?: { key: Buffer; cert: Buffer };
  region?: string;
} = {}): Promise<StoreServer> {
  const root = mkdtempSync(join(tmpdir(), 'posthorn-s3-'));
  const data = join(root, 'data');
  mkdirSync(join(data, bucket), { recursive: true });
  const files = { cert: join(root, 'cert.pem'), key: join(root, 'key.pem') };
  if (tls !== undefined) for (const name of ['cert', 'key'] as const) writeFileSync(files[name], tls[name]);
  const keys = ['--access', s3Keys.accessKeyId, '--secret', s3Keys.secretAccessKey, '--region', region, '--quiet'];
  const certificate = tls === undefined ? [] : ['--cert', files.cert, '--key', files.key];
  return await storeServer({
    root,
    scheme: tls === undefined ? 'http' : 'https',
    start: (port) => {
      const args = ['--port', `127.0.0.1:${port}`, ...keys, ...certificate, 'posix', data];
      return spawnServer(join(installed, 'bin/versitygw'), args, root);
    },
    objects: async () => filesIn(join(data, bucket)),
  });
}

/** A server of Google Cloud Storage on a directory. */
export async function startGcsServer(): Promise<StoreServer> {
  const root = mkdtempSync(join(tmpdir(), 'posthorn-gcs-'));
  mkdirSync(join(root, bucket));
  return await storeServer({
    root,
    start: (port) => {
      const address = ['-host', '127.0.0.1', '-port', String(port)];
      const shown = ['-external-url', `http://127.0.0.1:${port}`, '-public-host', `127.0.0.1:${port}`];
      const args = ['-scheme', 'http', ...address, ...shown, '-filesystem-root', root, '-log-level', 'error'];
      return spawnServer(join(installed, 'bin/fake-gcs-server'), args, root);
    },
    objects: async () => filesIn(join(root, bucket)),
  });
}

/** Azurite, Microsoft's server of Azure Blob Storage for tests. */
export async function startAzureServer(): Promise<StoreServer> {
  const root = mkdtempSync(join(tmpdir(), 'posthorn-azure-'));
  const program = join(installed, 'azurite/node_modules/azurite/dist/src/blob/main.js');
  const quiet = ['--silent', '--skipApiVersionCheck', '--disableTelemetry'];
  const container = (url: string) =>
    new BlobServiceClient(`${url}/${account}`, new StorageSharedKeyCredential(account, accountKey)).getContainerClient(bucket);
  const server = await storeServer({
    root,
    start: (port) => {
      const args = [program, '--blobHost', '127.0.0.1', '--blobPort', String(port), '--location', root, ...quiet];
      return spawnServer(process.execPath, args, root, { AZURITE_ACCOUNTS: `${account}:${accountKey}` });
    },
    objects: async (url) => {
      const client = container(url);
      const found = new Map<string, Buffer>();
      for await (const { name } of client.listBlobsFlat()) found.set(name, await client.getBlobClient(name).downloadToBuffer());
      return found;
    },
  });
  await container(server.url).create();
  return server;
}

/** Writes objects as files below a directory, for a reader of partitioned tables. */
export function download(objects: ReadonlyMap<string, Buffer>, directory: string): void {
  for (const [key, content] of objects) {
    mkdirSync(dirname(join(directory, key)), { recursive: true });
    writeFileSync(join(directory, key), content);
  }
}

async function storeServer({
  root,
  scheme = 'http',
  start,
  objects,
}: {
  root: string;
  scheme?: 'http' | 'https';
  start: (port: number) => ServerProcess;
  objects: (url: string) => Promise<Map<string, Buffer>>;
}): Promise<StoreServer> {
  const startOn = async (port: number): Promise<ServerProcess> => {
    const server = start(port);
    await server.untilUp(port);
    return server;
  };
  let { port, server } = await onFreePort(async (port) => ({ port, server: await startOn(port) }));
  const url = `${scheme}://127.0.0.1:${port}`;
  return {
    url,
    bucket,
    objects: () => objects(url),
    halt: () => server.stop('SIGTERM'),
    resume: async () => {
      server = await startOn(port);
    },
    stop: async () => {
      await server.stop('SIGTERM');
      rmSync(root, { recursive: true, force: true });
    },
  };
}

function filesIn(directory: string): Map<string, Buffer> {
  const found = new Map<string, Buffer>();
  for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || entry.parentPath.includes('.sgwtmp')) continue;
    const path = join(entry.parentPath, entry.name);
    found.set(path.slice(directory.length + 1), readFileSync(path));
  }
  return found;
}
