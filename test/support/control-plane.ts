import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { parseAllDocuments } from 'yaml';
import { z } from 'zod';
import { freePort } from './ports.ts';
import { type ServerProcess, spawnServer } from './server-process.ts';

export interface ControlPlane {
  /** `https://127.0.0.1:<port>`; stays the same over `stopApiServer` and `startApiServer`. */
  readonly url: string;
  /** Bearer token of a member of `system:masters`. */
  readonly token: string;
  readonly caFile: string;
  readonly kubeconfigPath: string;
  /** What the API server has stored at a path below `/registry/`, as text. Throws when there is nothing. */
  stored(path: string): Promise<string>;
  /** Process id of the API server that runs now. */
  apiServerPid(): number | undefined;
  /** One JSON request as the administrator; throws on a status of 400 and above. */
  request(method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE', path: string, body?: unknown, contentType?: string): Promise<unknown>;
  /** Writes a kubeconfig like `kubeconfigPath` for another server address (a proxy) or another token. */
  writeKubeconfig(override: { server?: string; token?: string }): string;
  /** Applies the CRDs of `crds/` and waits until each is served. */
  applyCrds(): Promise<void>;
  stopApiServer(signal?: NodeJS.Signals): Promise<void>;
  startApiServer(): Promise<void>;
  /** Ends every process and removes the data. */
  stop(): Promise<void>;
}

export interface ControlPlaneOptions {
  /** As `applyCrds`, before the controller manager starts: later it would find them within 30 seconds, and count none until then. */
  crds?: boolean;
  /** Namespace deletion and garbage collection by owner references need it. */
  controllerManager?: boolean;
  /** Further flags of kube-apiserver. */
  apiServerArgs?: string[];
}

const startDeadlineMs = 90_000;
const etcdRange = z.object({ kvs: z.array(z.object({ value: z.string() })).optional() });
const crdDirectory = new URL('../../crds/', import.meta.url);

/** Where etcd, kube-apiserver, … are: `KUBEBUILDER_ASSETS`, else what `hack/cluster` has built. */
export function kubernetesAssets(): string {
  const cache = process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache');
  return process.env['KUBEBUILDER_ASSETS'] ?? join(cache, 'posthorn-cluster', 'bin');
}

/**
 * A real Kubernetes control plane of this suite's own, on free ports of the loopback address with an empty data
 * directory. The random token and the random member name prove that what answers are the processes started here.
 */
export async function startControlPlane(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  const assets = kubernetesAssets();
  const directory = mkdtempSync(join(tmpdir(), 'posthorn-control-plane-'));
  const token = randomBytes(16).toString('hex');
  const [etcdPort, peerPort, apiPort] = [await freePort(), await freePort(), await freePort()];
  const url = `https://127.0.0.1:${apiPort}`;
  const caFile = join(directory, 'certificates', 'apiserver.crt');
  const processes: ServerProcess[] = [];
  let apiServer: ServerProcess | null = null;
  let agent: Agent | null = null;

  writeServiceAccountKeys(directory);
  writeFileSync(join(directory, 'tokens.csv'), `${token},admin,admin,"system:masters"\n`);

  const call = async (
    method: string,
    path: string,
    body?: unknown,
    contentType = 'application/json',
  ): Promise<{ status: number; text: string }> => {
    agent ??= new Agent({ connect: { ca: readFileSync(caFile) } });
    const response = await request(url + path, {
      method,
      dispatcher: agent,
      headers: {
        authorization: `Bearer ${token}`,
        accept: 'application/json',
        ...(body === undefined ? {} : { 'content-type': contentType }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      headersTimeout: 15_000,
    });
    return { status: response.statusCode, text: await response.body.text() };
  };
  const requestJson: ControlPlane['request'] = async (method, path, body, contentType) => {
    const { status, text } = await call(method, path, body, contentType);
    if (status >= 400) throw new Error(`${method} ${path} answered ${status}: ${text}`);
    return JSON.parse(text);
  };

  const startApiServer = async (): Promise<void> => {
    const started = spawnServer(
      join(assets, 'kube-apiserver'),
      [...apiServerFlags(directory, etcdPort, apiPort), ...(options.apiServerArgs ?? [])],
      directory,
    );
    apiServer = started;
    processes.push(started);
    await waitUntil('kube-apiserver', started, async () => {
      const ready = await call('GET', '/readyz');
      return ready.status === 200 && (await call('GET', '/api/v1/namespaces/default')).status === 200;
    });
  };

  const writeKubeconfig: ControlPlane['writeKubeconfig'] = (override) => {
    const path = join(directory, `kubeconfig-${randomBytes(4).toString('hex')}`);
    const cluster = { server: override.server ?? url, 'certificate-authority': caFile };
    writeFileSync(
      path,
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'Config',
        clusters: [{ name: 'test', cluster }],
        users: [{ name: 'test', user: { token: override.token ?? token } }],
        contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
        'current-context': 'test',
      }),
    );
    return path;
  };

  const stored: ControlPlane['stored'] = async (path) => {
    const key = Buffer.from(`/registry/${path}`).toString('base64');
    const url = `http://127.0.0.1:${etcdPort}/v3/kv/range`;
    const answer = await request(url, { method: 'POST', body: JSON.stringify({ key }) });
    const { kvs = [] } = etcdRange.parse(await answer.body.json());
    const [pair] = kvs;
    if (pair === undefined) throw new Error(`nothing is stored at ${path}`);
    return Buffer.from(pair.value, 'base64').toString('utf8');
  };

  const stop = async (): Promise<void> => {
    await Promise.all(processes.map((each) => each.stop('SIGKILL')));
    await agent?.destroy();
    rmSync(directory, { recursive: true, force: true });
  };

  try {
    processes.push(await startEtcd(assets, directory, etcdPort, peerPort));
    await startApiServer();
    const kubeconfigPath = writeKubeconfig({});
    if (options.crds === true) await applyCrds(requestJson);
    if (options.controllerManager === true) {
      const flags = controllerManagerFlags(directory, kubeconfigPath, caFile, await freePort());
      processes.push(spawnServer(join(assets, 'kube-controller-manager'), flags, directory));
    }
    return {
      url,
      token,
      caFile,
      kubeconfigPath,
      apiServerPid: () => apiServer?.pid,
      request: requestJson,
      stored,
      writeKubeconfig,
      applyCrds: () => applyCrds(requestJson),
      stopApiServer: async (signal = 'SIGKILL') => {
        await apiServer?.stop(signal);
      },
      startApiServer,
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

function writeServiceAccountKeys(directory: string): void {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    privateKeyEncoding: { type: 'pkcs1', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  });
  mkdirSync(join(directory, 'certificates'));
  writeFileSync(join(directory, 'service-account.key'), privateKey);
  writeFileSync(join(directory, 'service-account.pub'), publicKey);
}

async function startEtcd(assets: string, directory: string, clientPort: number, peerPort: number): Promise<ServerProcess> {
  const name = `member-${randomBytes(4).toString('hex')}`;
  const client = `http://127.0.0.1:${clientPort}`;
  const peer = `http://127.0.0.1:${peerPort}`;
  const flags = [
    `--name=${name}`,
    `--data-dir=${join(directory, 'etcd')}`,
    `--listen-client-urls=${client}`,
    `--advertise-client-urls=${client}`,
    `--listen-peer-urls=${peer}`,
    `--initial-advertise-peer-urls=${peer}`,
    `--initial-cluster=${name}=${peer}`,
    '--unsafe-no-fsync',
    '--log-level=warn',
  ];
  const etcd = spawnServer(join(assets, 'etcd'), flags, directory);
  await waitUntil('etcd', etcd, async () => {
    const members = await request(`${client}/v3/cluster/member/list`, { method: 'POST', body: '{}' });
    return (await members.body.text()).includes(`"${name}"`);
  });
  return etcd;
}

function apiServerFlags(directory: string, etcdPort: number, port: number): string[] {
  return [
    `--etcd-servers=http://127.0.0.1:${etcdPort}`,
    '--bind-address=127.0.0.1',
    `--secure-port=${port}`,
    '--advertise-address=127.0.0.1',
    '--endpoint-reconciler-type=none',
    `--cert-dir=${join(directory, 'certificates')}`,
    '--service-account-issuer=https://kubernetes.default.svc',
    `--service-account-signing-key-file=${join(directory, 'service-account.key')}`,
    `--service-account-key-file=${join(directory, 'service-account.pub')}`,
    `--token-auth-file=${join(directory, 'tokens.csv')}`,
    '--authorization-mode=RBAC',
    '--service-cluster-ip-range=10.96.0.0/16',
  ];
}

function controllerManagerFlags(directory: string, kubeconfigPath: string, caFile: string, port: number): string[] {
  return [
    `--kubeconfig=${kubeconfigPath}`,
    `--service-account-private-key-file=${join(directory, 'service-account.key')}`,
    `--root-ca-file=${caFile}`,
    '--use-service-account-credentials=true',
    '--leader-elect=false',
    '--bind-address=127.0.0.1',
    `--secure-port=${port}`,
  ];
}

async function applyCrds(requestJson: ControlPlane['request']): Promise<void> {
  const files = readdirSync(crdDirectory).filter((file) => file.endsWith('.yaml'));
  const root = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
  const crds = files.flatMap((file) => parseAllDocuments(readFileSync(new URL(file, crdDirectory), 'utf8')).map((each) => each.toJS()));
  for (const crd of crds) {
    await requestJson('PATCH', `${root}/${crd.metadata.name}?fieldManager=test&force=true`, crd, 'application/apply-patch+yaml');
  }
  for (const crd of crds) {
    const path = `/apis/${crd.spec.group}/${crd.spec.versions[0].name}/${crd.spec.names.plural}`;
    await retryUntil(`${crd.metadata.name} to be served`, async () => {
      await requestJson('GET', path);
      return true;
    });
  }
}

async function waitUntil(name: string, process: ServerProcess, check: () => Promise<boolean>): Promise<void> {
  await retryUntil(`${name} to answer`, async () => {
    if (process.exited()) throw new FatalError(`${name} stopped:\n${process.lastOutput()}`);
    return check();
  });
}

class FatalError extends Error {}

async function retryUntil(what: string, check: () => Promise<boolean>): Promise<void> {
  const deadline = AbortSignal.timeout(startDeadlineMs);
  let last: unknown;
  while (!deadline.aborted) {
    try {
      if (await check()) return;
    } catch (error) {
      if (error instanceof FatalError) throw error;
      last = error;
    }
    await sleep(100);
  }
  throw new Error(`waited ${startDeadlineMs} ms for ${what}`, { cause: last });
}
