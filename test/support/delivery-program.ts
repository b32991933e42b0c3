import { freePort } from './ports.ts';
import { type Program, startProgram } from './program.ts';

/** A process of the role delivery, whose keyring is `testKeyring` (`controllers.ts`). `environment`: over the usual one. */
export async function startDeliveryProgram(redisUrl: string, environment: Record<string, string> = {}): Promise<Program> {
  return startProgram(['delivery'], {
    POSTHORN_REDIS_URL: redisUrl,
    POSTHORN_ENCRYPTION_KEYS: `k1:${Buffer.alloc(32, 1).toString('base64')}`,
    POSTHORN_OPS_PORT: String(await freePort()),
    POSTHORN_HOST: '127.0.0.1',
    ...environment,
  });
}
