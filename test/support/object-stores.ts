import { createHmac } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { homedir, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { BlobServiceClient, StorageSharedKeyCredential } from '@azure/storage-blob';
import { freePort } from './ports.ts';
import { type ServerProcess, spawnServer } from './server-process.ts';
import { waitUntil } from './wait-until.ts';

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
  const port = await freePort();
  const files = { cert: join(root, 'cert.pem'), key: join(root, 'key.pem') };
  if (tls !== undefined) for (const name of ['cert', 'key'] as const) writeFileSync(files[name], tls[name]);
  const args = [
    '--port',
    `127.0.0.1:${port}`,
    '--access',
    s3Keys.accessKeyId,
    '--secret',
    s3Keys.secretAccessKey,
    '--region',
    region,
    '--quiet',
  ];
  if (tls !== undefined) args.push('--cert', files.cert, '--key', files.key);
  return await storeServer({
    root,
    port,
    url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`,
    start: () => spawnServer(join(installed, 'bin/versitygw'), [...args, 'posix', data], root),
    objects: async () => filesIn(join(data, bucket)),
  });
}

/** A server of Google Cloud Storage on a directory. */
export async function startGcsServer(): Promise<StoreServer> {
  const root = mkdtempSync(join(tmpdir(), 'posthorn-gcs-'));
  mkdirSync(join(root, bucket));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const args = ['-scheme', 'http', '-host', '127.0.0.1', '-port', String(port), '-external-url', url, '-public-host', `127.0.0.1:${port}`];
  return await storeServer({
    root,
    port,
    url,
    start: () => spawnServer(join(installed, 'bin/fake-gcs-server'), [...args, '-filesystem-root', root, '-log-level', 'error'], root),
    objects: async () => filesIn(join(root, bucket)),
  });
}

/** Azurite, Microsoft's server of Azure Blob Storage for tests. */
export async function startAzureServer(): Promise<StoreServer> {
  const root = mkdtempSync(join(tmpdir(), 'posthorn-azure-'));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const program = join(installed, 'azurite/node_modules/azurite/dist/src/blob/main.js');
  const args = [
    program,
    '--blobHost',
    '127.0.0.1',
    '--blobPort',
    String(port),
    '--location',
    root,
    '--silent',
    '--skipApiVersionCheck',
    '--disableTelemetry',
  ];
  const client = new BlobServiceClient(`${url}/${account}`, new StorageSharedKeyCredential(account, accountKey)).getContainerClient(bucket);
  const server = await storeServer({
    root,
    port,
    url,
    start: () => spawnServer(process.execPath, args, root, { AZURITE_ACCOUNTS: `${account}:${accountKey}` }),
    objects: async () => {
      const found = new Map<string, Buffer>();
      for await (const { name } of client.listBlobsFlat()) found.set(name, await client.getBlobClient(name).downloadToBuffer());
      return found;
    },
  });
  await client.create();
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
  port,
  url,
  start,
  objects,
}: {
  root: string;
  port: number;
  url: string;
  start: () => ServerProcess;
  objects: () => Promise<Map<string, Buffer>>;
}): Promise<StoreServer> {
  let server = start();
  const isUp = async (): Promise<void> => {
    await waitUntil(`${url} to be up`, 30_000, async () => {
      if (server.exited()) throw new Error(`the object store has ended: ${server.lastOutput()}`);
      return (await accepts(port)) ? true : undefined;
    });
  };
  await isUp();
  return {
    url,
    bucket,
    objects,
    halt: () => server.stop('SIGTERM'),
    resume: async () => {
      server = start();
      await isUp();
    },
    stop: async () => {
      await server.stop('SIGTERM');
      rmSync(root, { recursive: true, force: true });
    },
  };
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => resolve(true));
    socket.on('error', () => resolve(false));
    socket.on('connect', () => socket.destroy());
  });
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
