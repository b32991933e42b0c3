import type { WorkerEnvironment } from '../controllers/delivery-pool/delivery-pool-reconciler.ts';
import { redisNodes } from '../redis/address.ts';
import { type Config, ConfigError, readConfig } from './config.ts';
import { withoutLineBreak } from './file-variables.ts';

const defaultOpsPort = 9090;
/** Default port of the masters that sentinels name. */
const redisPort = 6379;

/** Network access that a worker with this environment and these files (by path) would need, or the configuration error that it would report instead of starting. */
export function checkWorkerEnvironment(
  environment: Record<string, string>,
  files: ReadonlyMap<string, string> = new Map(),
): WorkerEnvironment {
  let config: Config;
  try {
    config = readConfig('delivery', environment, (file) => {
      const text = files.get(file);
      return text === undefined ? null : withoutLineBreak(text);
    });
  } catch (error) {
    if (error instanceof ConfigError) return { mistakes: error.mistakes };
    throw error;
  }
  const { allowedCidrs, allowedHosts, onlyHosts, proxyUrl } = config.egress;
  const { endpoints } = config.warehouse;
  const servers = [proxyUrl, endpoints.s3, endpoints.gcs, endpoints.azure].filter((url) => url !== undefined);
  return {
    requests: { egress: { allowedCidrs, allowedHosts, onlyHosts }, endpoints },
    opsPort: config.opsPort ?? defaultOpsPort,
    egress: {
      ports: [...redisPorts(config), ...servers.map(portOf), ...(config.smtp === undefined ? [] : [config.smtp.port])],
      cidrs: allowedCidrs,
      hasHosts: allowedHosts.length > 0,
    },
  };
}

function redisPorts({ redis }: Config): number[] {
  if (redis === undefined) return [];
  return [...redisNodes(redis.url).nodes.map(({ port }) => port), ...(redis.mode === 'single' ? [] : [redisPort])];
}

function portOf(url: string): number {
  const { port, protocol } = new URL(url);
  return port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port);
}
