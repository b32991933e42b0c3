import { namespace, startControlPlanePrograms } from '../bench/lib/control-plane-programs.ts';
import type { Sink } from '../bench/lib/sink.ts';
import { buildProgram } from '../lib/built-program.ts';
import type { Installation } from './installation.ts';

/** As `prepareInstallation`, with all roles started and its resources in a real API server: they outlive Redis. */
export async function kubernetesInstallation({ origin: url }: Sink): Promise<Omit<Installation, 'start'>> {
  buildProgram();
  const shards = 1;
  const { redis, programs, ingestPort, create, stop } = await startControlPlanePrograms(
    ['controller', 'api', 'ingest', 'delivery', 'delivery'],
    {
      POSTHORN_HOST: '127.0.0.1',
      POSTHORN_SHARDS: String(shards),
      POSTHORN_EGRESS_ALLOWED_CIDRS: '127.0.0.0/8',
      POSTHORN_REDIS_MEMORY_LIMIT: '4gb',
    },
  );
  try {
    await create({ kind: 'Source', plural: 'sources' }, 'orders', { provider: 'generic' });
    await create({ kind: 'Destination', plural: 'destinations' }, 'sink', { http: { url } });
    await create({ kind: 'Route', plural: 'routes' }, 'all', { sourceRef: { name: 'orders' }, destinationRefs: [{ name: 'sink' }] });
  } catch (error) {
    await stop();
    throw error;
  }
  const [controller, api, ingest, ...delivery] = programs;
  const origin = `http://127.0.0.1:${ingestPort}/ingest/${namespace}/orders`;
  return {
    redis,
    prefix: 'posthorn:',
    shards,
    ingest: origin,
    ingestMore: origin,
    programs: { controller: controller ? [controller] : [], api: api ? [api] : [], ingest: ingest ? [ingest] : [], delivery },
    stop,
  };
}
