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

export interface ConnectedProcess {
  role: string;
  /** That its release knows. */
  layout: number;
  /** Without the port. */
  address: string;
  connectedSeconds: number;
}

/** The processes that are connected to Redis now. Throws INVALID_CONFIG when Redis does not let its clients be listed. */
export async function connectedProcesses({ redis, prefix }: { redis: RedisClient; prefix: string }): Promise<ConnectedProcess[]> {
  const found: ConnectedProcess[] = [];
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
      if (encodedPrefix !== encodeURIComponent(prefix)) continue;
      const address = (client.get('addr') ?? '').replace(/:\d+$/, '');
      found.push({ role, layout: Number(layout), address, connectedSeconds: Number(client.get('age')) });
    }
  }
  return found;
}

/** The processes of releases that do not know the layout of this one, as `<role> at <address>`. Rejects as `connectedProcesses` does. */
export async function earlierProcesses(place: { redis: RedisClient; prefix: string }): Promise<string[]> {
  const all = await connectedProcesses(place);
  const found = all.filter(({ layout }) => layout < storeLayout).map(({ role, address }) => `${role} at ${address}`);
  return [...new Set(found)].sort();
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
