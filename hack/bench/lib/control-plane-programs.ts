import { newApiKey } from '../../../src/core/api-key-hash.ts';
import { type ControlPlane, startControlPlane } from '../../../test/support/control-plane.ts';
import { freePort } from '../../../test/support/ports.ts';
import { type Program, startProgram } from '../../../test/support/program.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { builtProgram } from '../../lib/built-program.ts';

export const apiVersion = 'posthorn.dev/v1alpha1';
export const namespace = 'bench';

/** Roles of the built program beside a real API server with an organization in the namespace `bench`, on a Redis of their own. */
export interface ControlPlanePrograms {
  plane: ControlPlane;
  redis: RedisServer;
  programs: Program[];
  apiPort: number;
  ingestPort: number;
  /** Key of an admin. */
  apiKey: string;
  create(kind: { kind: string; plural: string }, name: string, spec: object): Promise<unknown>;
  stop(): Promise<void>;
}

export async function startControlPlanePrograms(
  roles: readonly ('controller' | 'api' | 'ingest' | 'delivery')[],
  environment: Record<string, string> = {},
): Promise<ControlPlanePrograms> {
  const [plane, redis] = await Promise.all([startControlPlane({ crds: true }), startRedis()]);
  const programs: Program[] = [];
  const stop = async (): Promise<void> => {
    await Promise.all(programs.map((program) => program.stop()));
    await Promise.all([plane.stop(), redis.stop()]);
  };
  try {
    const [apiPort, ingestPort] = [await freePort(), await freePort()];
    for (const role of roles) {
      const own = {
        ...(role === 'delivery' || role === 'ingest' ? {} : { KUBECONFIG: plane.kubeconfigPath }),
        POSTHORN_REDIS_URL: redis.url,
        POSTHORN_ENCRYPTION_KEYS: `k1:${Buffer.alloc(32, 1).toString('base64')}`,
        POSTHORN_OPS_PORT: String(await freePort()),
        POSTHORN_LOG_LEVEL: 'warn',
        ...(role === 'api' ? { POSTHORN_PORT: String(apiPort) } : {}),
        ...(role === 'ingest' ? { POSTHORN_PORT: String(ingestPort) } : {}),
        ...environment,
      };
      programs.push(startProgram([role], own, builtProgram));
    }
    const create: ControlPlanePrograms['create'] = ({ kind, plural }, name, spec) =>
      plane.request('POST', `/apis/${apiVersion}/namespaces/${namespace}/${plural}`, { apiVersion, kind, metadata: { name }, spec });
    const { key, sha256 } = newApiKey();
    await plane.request('POST', '/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
    const organization = { apiVersion, kind: 'Organization', metadata: { name: namespace }, spec: { namespace } };
    await plane.request('POST', `/apis/${apiVersion}/organizations`, organization);
    await create({ kind: 'ApiKey', plural: 'apikeys' }, 'bench', { sha256, role: 'admin' });
    return { plane, redis, programs, apiPort, ingestPort, apiKey: key, create, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
