import { randomBytes } from 'node:crypto';
import { type CertificateAuthority, createCertificateAuthority } from '../support/certificate-authority.ts';
import { type ControlPlane, startControlPlane } from '../support/control-plane.ts';
import { type Program, startProgram } from '../support/program.ts';
import { type RedisServer, startRedis } from '../support/redis.ts';
import { waitUntil } from '../support/wait-until.ts';
import type { Manifest } from './world.ts';

const plurals: Record<string, string> = {
  Organization: 'organizations',
  Source: 'sources',
  Destination: 'destinations',
  Route: 'routes',
  HttpCronJob: 'httpcronjobs',
  ApiKey: 'apikeys',
  Secret: 'secrets',
};

/** The roles as processes beside a real API server and a real Redis. */
export interface ControlPlaneWorld {
  readonly controlPlane: ControlPlane;
  readonly redis: RedisServer;
  readonly authority: CertificateAuthority;
  /** Starts a role that reaches the API server by this kubeconfig; the default one goes there directly. */
  start(role: 'controller' | 'api' | 'delivery', options?: { kubeconfig?: string; port?: number; opsPort?: number }): Program;
  apply(manifests: readonly Manifest[]): Promise<void>;
  remove(manifest: Manifest): Promise<void>;
  waitUntilReady(manifest: Manifest): Promise<void>;
  stop(): Promise<void>;
}

export async function startControlPlaneWorld(): Promise<ControlPlaneWorld> {
  const [controlPlane, redis] = await Promise.all([startControlPlane(), startRedis()]);
  const authority = createCertificateAuthority();
  await controlPlane.applyCrds();
  const encryptionKeys = `k1:${randomBytes(32).toString('base64')}`;
  const programs: Program[] = [];
  const read = (manifest: Manifest): Promise<unknown> => controlPlane.request('GET', pathOf(manifest));
  return {
    controlPlane,
    redis,
    authority,
    start: (role, { kubeconfig = controlPlane.kubeconfigPath, port, opsPort = 0 } = {}) => {
      const program = startProgram([role], {
        KUBECONFIG: kubeconfig,
        POSTHORN_REDIS_URL: redis.url,
        POSTHORN_ENCRYPTION_KEYS: encryptionKeys,
        POSTHORN_OPS_PORT: String(opsPort),
        POSTHORN_EGRESS_CA_FILE: authority.file,
        ...(port === undefined ? {} : { POSTHORN_PORT: String(port) }),
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
      await waitUntil(`${manifest.kind} ${manifest.metadata.name} to be ready`, 30_000, async () =>
        isReady(await read(manifest)) ? true : undefined,
      );
    },
    stop: async () => {
      await Promise.all(programs.map((program) => program.stop()));
      await Promise.all([controlPlane.stop(), redis.stop()]);
      authority.remove();
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
