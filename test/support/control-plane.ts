import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent, request } from 'undici';
import { parseAllDocuments } from 'yaml';
import { z } from 'zod';
import { filesBelow } from '../../hack/files-digest.ts';
import { createCertificateAuthority } from './certificate-authority.ts';
import { copyData, keptSeed } from './control-plane-seed.ts';
import { eventually } from './eventually.ts';
import { onFreePort } from './ports.ts';
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
  stopApiServer(signal?: NodeJS.Signals): Promise<void>;
  startApiServer(): Promise<void>;
  /** Ends every process and removes the data. */
  stop(): Promise<void>;
}

export interface ControlPlaneOptions {
  /** The CRDs of `crds/`; each is served. The controller manager counts their objects from its start. */
  crds?: boolean;
  /** Namespace deletion and garbage collection by owner references need it. */
  controllerManager?: boolean;
  /** Further flags of kube-apiserver. */
  apiServerArgs?: string[];
}

const startDeadlineMs = 90_000;
const etcdRange = z.object({ kvs: z.array(z.object({ value: z.string() })).optional() });
const crdDirectory = new URL('../../crds/', import.meta.url).pathname;

/** Where etcd, kube-apiserver, … are: `KUBEBUILDER_ASSETS`, else what `hack/cluster` has built. */
export function kubernetesAssets(): string {
  const cache = process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache');
  return process.env['KUBEBUILDER_ASSETS'] ?? join(cache, 'posthorn-cluster', 'bin');
}

/**
 * A real Kubernetes control plane of this suite's own, on free ports of the loopback address, without objects but those that Kubernetes makes itself, and the
 * CRDs. The random token and the random member name prove that what answers are the processes started here.
 */
export async function startControlPlane(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  const { crds = false } = options;
  const programs = ['etcd', 'kube-apiserver'].map((name) => join(kubernetesAssets(), name));
  const files = [
    import.meta.filename,
    new URL('./control-plane-seed.ts', import.meta.url).pathname,
    ...(crds ? filesBelow(crdDirectory) : []),
  ];
  let first: StartedPlane | undefined;
  try {
    const seed = await keptSeed({ programs, files }, async () => {
      first = await startPlane({}, null);
      if (crds) await applyCrds(first.request);
      return await first.end();
    });
    return await startPlane(options, seed);
  } finally {
    await first?.stop();
  }
}

interface StartedPlane extends ControlPlane {
  /** Ends its processes in order; returns the directory of its data. */
  end(): Promise<string>;
}

/** `seed`: data to begin with a copy of. */
async function startPlane(options: ControlPlaneOptions, seed: string | null): Promise<StartedPlane> {
  const assets = kubernetesAssets();
  const directory = mkdtempSync(join(tmpdir(), 'posthorn-control-plane-'));
  const token = randomBytes(16).toString('hex');
  const caFile = join(directory, 'certificates', 'ca.crt');
  writeCertificates(join(directory, 'certificates'), caFile);
  const agent = new Agent({ connect: { ca: readFileSync(caFile) } });
  const processes: ServerProcess[] = [];
  let [etcdPort, apiPort] = [0, 0];
  let apiServer: ServerProcess | null = null;

  writeServiceAccountKeys(directory);
  writeFileSync(join(directory, 'tokens.csv'), `${token},admin,admin,"system:masters"\n`);

  const call = async (
    method: string,
    path: string,
    body?: unknown,
    contentType = 'application/json',
  ): Promise<{ status: number; text: string }> => {
    const response = await request(`https://127.0.0.1:${apiPort}${path}`, {
      method,
      dispatcher: agent,
      headers: {
        authorization: `Bearer ${token}`,
        accept: 'application/json',
        ...(body === undefined ? {} : { 'content-type': contentType }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      headersTimeout: 60_000,
    });
    return { status: response.statusCode, text: await response.body.text() };
  };
  const requestJson: ControlPlane['request'] = async (method, path, body, contentType) => {
    const { status, text } = await call(method, path, body, contentType);
    if (status >= 400) throw new Error(`${method} ${path} answered ${status}: ${text}`);
    return JSON.parse(text);
  };

  const startApiServer = async (port: number): Promise<void> => {
    apiPort = port;
    const flags = [...apiServerFlags(directory, etcdPort, port), ...(options.apiServerArgs ?? [])];
    const started = spawnServer(join(assets, 'kube-apiserver'), flags, directory);
    apiServer = started;
    processes.push(started);
    const answers = async (path: string): Promise<boolean> => (await call('GET', path)).status === 200;
    await started.untilUp(port, async () => (await answers('/readyz')) && (await answers('/api/v1/namespaces/default')));
  };

  const writeKubeconfig: ControlPlane['writeKubeconfig'] = (override) => {
    const path = join(directory, `kubeconfig-${randomBytes(4).toString('hex')}`);
    const cluster = { server: override.server ?? `https://127.0.0.1:${apiPort}`, 'certificate-authority': caFile };
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
    await agent.destroy();
    rmSync(directory, { recursive: true, force: true });
  };

  try {
    if (seed !== null) await copyData(seed, join(directory, 'etcd'));
    const etcd = await startEtcd(assets, directory);
    etcdPort = etcd.port;
    processes.push(etcd.server);
    await onFreePort(startApiServer);
    const kubeconfigPath = writeKubeconfig({});
    if (options.crds === true) await untilServed(requestJson);
    if (options.controllerManager === true) {
      const flags = controllerManagerFlags(directory, kubeconfigPath, caFile);
      const manager = spawnServer(join(assets, 'kube-controller-manager'), flags, directory);
      processes.push(manager);
      const account = '/api/v1/namespaces/default/serviceaccounts/default';
      await manager.untilUp(null, async () => (await call('GET', account)).status === 200);
    }
    return {
      url: `https://127.0.0.1:${apiPort}`,
      token,
      caFile,
      kubeconfigPath,
      apiServerPid: () => apiServer?.pid,
      request: requestJson,
      stored,
      writeKubeconfig,
      stopApiServer: async (signal = 'SIGKILL') => {
        await apiServer?.stop(signal);
      },
      startApiServer: () => startApiServer(apiPort),
      end: async () => {
        for (const each of processes.toReversed()) await each.stop('SIGTERM');
        return join(directory, 'etcd');
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** kube-apiserver would make RSA keys, which takes longer, as does each handshake with one. */
function writeCertificates(directory: string, caFile: string): void {
  mkdirSync(directory);
  const authority = createCertificateAuthority();
  const { key, cert } = authority.issue(['127.0.0.1', 'localhost']);
  writeFileSync(caFile, authority.text);
  authority.remove();
  writeFileSync(join(directory, 'apiserver.key'), key);
  writeFileSync(join(directory, 'apiserver.crt'), cert);
}

function writeServiceAccountKeys(directory: string): void {
  const { privateKey, publicKey } = generateKeyPairSync('ec', {
    namedCurve: 'P-256',
    privateKeyEncoding: { type: 'sec1', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  });
  writeFileSync(join(directory, 'service-account.key'), privateKey);
  writeFileSync(join(directory, 'service-account.pub'), publicKey);
}

async function startEtcd(assets: string, directory: string): Promise<{ port: number; server: ServerProcess }> {
  const name = `member-${randomBytes(4).toString('hex')}`;
  return await onFreePort(async (port) => {
    const client = `http://127.0.0.1:${port}`;
    const flags = [
      `--name=${name}`,
      `--data-dir=${join(directory, 'etcd')}`,
      `--listen-client-urls=${client}`,
      `--advertise-client-urls=${client}`,
      // There are no peers: its port may be any.
      '--listen-peer-urls=http://127.0.0.1:0',
      '--unsafe-no-fsync',
      '--log-level=warn',
    ];
    const server = spawnServer(join(assets, 'etcd'), flags, directory);
    await server.untilUp(port, async () => {
      const members = await request(`${client}/v3/cluster/member/list`, { method: 'POST', body: '{}' });
      return (await members.body.text()).includes(`"${name}"`);
    });
    return { port, server };
  });
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
    // A tenth of the processor time of a start.
    '--profiling=false',
    '--enable-priority-and-fairness=false',
  ];
}

/** There are no nodes, volumes and certificates that the others would look after, and to start those takes seconds. */
const controllers = [
  'clusterrole-aggregation-controller',
  'deployment-controller',
  'garbage-collector-controller',
  'horizontal-pod-autoscaler-controller',
  'namespace-controller',
  'replicaset-controller',
  'resourcequota-controller',
  'root-ca-certificate-publisher-controller',
  'serviceaccount-controller',
  'validatingadmissionpolicy-status-controller',
];

function controllerManagerFlags(directory: string, kubeconfigPath: string, caFile: string): string[] {
  return [
    `--kubeconfig=${kubeconfigPath}`,
    `--service-account-private-key-file=${join(directory, 'service-account.key')}`,
    `--root-ca-file=${caFile}`,
    '--use-service-account-credentials=true',
    '--leader-elect=false',
    '--secure-port=0',
    `--controllers=${controllers.join(',')}`,
  ];
}

const crdsOfTree = () =>
  filesBelow(crdDirectory)
    .filter((file) => file.endsWith('.yaml'))
    .flatMap((file) => parseAllDocuments(readFileSync(file, 'utf8')).map((each) => each.toJS()));

async function applyCrds(requestJson: ControlPlane['request']): Promise<void> {
  const root = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
  await Promise.all(crdsOfTree().map((crd) => requestJson('POST', root, crd)));
  await untilServed(requestJson);
}

async function untilServed(requestJson: ControlPlane['request']): Promise<void> {
  await Promise.all(
    crdsOfTree().map(({ metadata, spec }) =>
      eventually(`${metadata.name} to be served`, startDeadlineMs, async () => {
        await requestJson('GET', `/apis/${spec.group}/${spec.versions[0].name}/${spec.names.plural}`);
        return true;
      }),
    ),
  );
}
