import { PosthornError } from '../../core/errors.ts';
import { mastersOf, type RedisClient } from '../../redis/connection.ts';
import { storeLayout } from '../registry/store-layout.ts';

const roles = ['controller', 'api', 'ingest', 'delivery', 'standalone'] as const;
/** A process of an installation that stays. */
export type ConnectedRole = (typeof roles)[number];

/** Name of the first connection of a process of the installation with this key prefix: Redis tells by it who is there, and which layout they know. */
export function processName(role: ConnectedRole, prefix: string): string {
  return `posthorn-${role}-main@${storeLayout}@${encodeURIComponent(prefix)}`;
}

const named = new RegExp(`^posthorn-(${roles.join('|')})-main@(\\d+)@(\\S*)$`);

/**
 * The processes of releases that do not know the layout of this one and are connected to Redis now, as `<role> at <address>`. Throws INVALID_CONFIG when
 * Redis does not let its clients be listed.
 */
export async function earlierProcesses({ redis, prefix }: { redis: RedisClient; prefix: string }): Promise<string[]> {
  const found = new Set<string>();
  for (const server of mastersOf(redis)) {
    const clients = await server.call('CLIENT', 'LIST').catch((error: unknown) => {
      throw new PosthornError(
        'INVALID_CONFIG',
        'Redis does not tell which clients it has, so that nobody knows whether processes of an earlier release are running: allow the command CLIENT LIST',
        { cause: error },
      );
    });
    for (const line of String(clients).split('\n')) {
      const client = fieldsOf(line);
      const [, role, layout, encodedPrefix] = named.exec(client.get('name') ?? '') ?? [];
      if (role === undefined || client.get('db') !== String(server.options.db ?? 0)) continue;
      const isEarlier = Number(layout) < storeLayout && encodedPrefix === encodeURIComponent(prefix);
      if (isEarlier) found.add(`${role} at ${(client.get('addr') ?? '').replace(/:\d+$/, '')}`);
    }
  }
  return [...found].sort();
}

/** Of a line of CLIENT LIST: `id=3 addr=10.0.0.7:41022 name=… db=0 …`. */
function fieldsOf(line: string): ReadonlyMap<string, string> {
  return new Map(
    line.split(' ').map((field) => {
      const at = field.indexOf('=');
      return [field.slice(0, at), field.slice(at + 1)];
    }),
  );
}
