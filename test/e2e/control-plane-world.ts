import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AuditLog } from '../support/audit-log.ts';
import { type CertificateAuthority, createCertificateAuthority } from '../support/certificate-authority.ts';
import { type ControlPlane, startControlPlane } from '../support/control-plane.ts';
import { eventually } from '../support/eventually.ts';
import { type Program, startProgram } from '../support/program.ts';
import { type RedisServer, startRedis } from '../support/redis.ts';
import { tokenOfRole } from '../support/service-account-tokens.ts';
import type { Manifest } from './world.ts';

const plurals: Record<string, string> = {
  Namespace: 'namespaces',
  Organization: 'organizations',
  Source: 'sources',
  Destination: 'destinations',
  Route: 'routes',
  HttpCronJob: 'httpcronjobs',
  ApiKey: 'apikeys',
  Secret: 'secrets',
};

/** Where the controllers have their Lease, and DeliveryPools would be. */
const system = 'posthorn-system';
const auditPolicy = new URL('../../hack/lib/audit-policy.yaml', import.meta.url).pathname;

interface RoleOptions {
  kubeconfig?: string;
  port?: number;
  opsPort?: number;
  environment?: Record<string, string>;
}

/** The roles as processes beside a real API server, each with its permissions of config/rbac alone, and a real Redis. */
export interface ControlPlaneWorld {
  readonly controlPlane: ControlPlane;
  readonly redis: RedisServer;
  readonly authority: CertificateAuthority;
  /** A kubeconfig with the permissions of the role, for another address of the API server. */
  kubeconfig(role: 'controller' | 'api', server: string): string;
  /** Starts a role that reaches the API server by this kubeconfig; the default one goes there directly. Workers and ingest have none. */
  start(role: 'controller' | 'api' | 'ingest' | 'delivery', options?: RoleOptions): Program;
  apply(manifests: readonly Manifest[]): Promise<void>;
  remove(manifest: Manifest): Promise<void>;
  waitUntilReady(manifest: Manifest): Promise<void>;
  /** Requests of the roles that the API server has refused for lack of permissions; it also refuses some when it restarts. */
  forbidden(): readonly string[];
  stop(): Promise<void>;
}

export async function startControlPlaneWorld(): Promise<ControlPlaneWorld> {
  const auditDirectory = mkdtempSync(join(tmpdir(), 'posthorn-audit-'));
  const auditLog = join(auditDirectory, 'audit.log');
  const apiServerArgs = [`--audit-policy-file=${auditPolicy}`, `--audit-log-path=${auditLog}`];
  const [controlPlane, redis] = await Promise.all([startControlPlane({ apiServerArgs, crds: true }), startRedis()]);
  const authority = createCertificateAuthority();
  await controlPlane.request('POST', '/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: system } });
  // Organizations require it; the workers are processes here, and it has none.
  await controlPlane.request('POST', `/apis/posthorn.dev/v1alpha1/namespaces/${system}/deliverypools`, {
    apiVersion: 'posthorn.dev/v1alpha1',
    kind: 'DeliveryPool',
    metadata: { name: 'default' },
    spec: { replicas: 0 },
  });
  const tokens = { controller: await tokenOfRole(controlPlane, 'controller'), api: await tokenOfRole(controlPlane, 'api') };
  const kubeconfigs = {
    controller: controlPlane.writeKubeconfig({ token: tokens.controller }),
    api: controlPlane.writeKubeconfig({ token: tokens.api }),
    delivery: undefined,
    ingest: undefined,
  };
  const encryptionKeys = `k1:${randomBytes(32).toString('base64')}`;
  const programs: Program[] = [];
  const read = (manifest: Manifest): Promise<unknown> => controlPlane.request('GET', pathOf(manifest));
  return {
    controlPlane,
    redis,
    authority,
    kubeconfig: (role, server) => controlPlane.writeKubeconfig({ server, token: tokens[role] }),
    start: (role, { kubeconfig = kubeconfigs[role], port, opsPort = 0, environment = {} } = {}) => {
      const program = startProgram([role], {
        ...(kubeconfig === undefined ? {} : { KUBECONFIG: kubeconfig }),
        ...(role === 'controller' ? { POSTHORN_LEASE_NAMESPACE: system } : {}),
        POSTHORN_REDIS_URL: redis.url,
        POSTHORN_ENCRYPTION_KEYS: encryptionKeys,
        POSTHORN_OPS_PORT: String(opsPort),
        POSTHORN_EGRESS_CA_FILE: authority.file,
        ...(port === undefined ? {} : { POSTHORN_PORT: String(port) }),
        ...environment,
      });
      programs.push(program);
      return program;
    },
    apply: async (manifests) => {
      for (const manifest of manifests)
        await controlPlane.request(
          'PATCH',
          `${pathOf(manifest)}?fieldManager=kubectl&force=true`,
          manifest,
          'application/apply-patch+yaml',
        );
    },
    remove: async (manifest) => {
      await controlPlane.request('DELETE', pathOf(manifest));
    },
    waitUntilReady: async (manifest) => {
      await eventually(`${manifest.kind} ${manifest.metadata.name} to be ready`, 120_000, async () => isReady(await read(manifest)));
    },
    forbidden: () => new AuditLog(auditLog).read().forbidden,
    stop: async () => {
      await Promise.all(programs.map((program) => program.stop()));
      await Promise.all([controlPlane.stop(), redis.stop()]);
      authority.remove();
      rmSync(auditDirectory, { recursive: true });
    },
  };
}

function pathOf({ apiVersion, kind, metadata }: Manifest): string {
  const root = apiVersion === 'v1' ? '/api/v1' : `/apis/${apiVersion}`;
  const namespace = metadata.namespace === undefined ? '' : `/namespaces/${metadata.namespace}`;
  return `${root}${namespace}/${plurals[kind]}/${metadata.name}`;
}

// biome-ignore lint/suspicious/noExplicitAny: an object as the API server gives it
function isReady(object: any): boolean {
  const ready = object.status?.conditions?.find(({ type }: { type: string }) => type === 'Ready');
  return ready?.status === 'True' && ready.observedGeneration === object.metadata.generation;
}
