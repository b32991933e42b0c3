import { PosthornError } from '../../core/errors.ts';
import { mastersOf, type RedisClient } from '../../redis/connection.ts';
import { redisUnavailable } from '../../redis/unavailable.ts';
import { storeLayout } from '../registry/store-layout.ts';

const roles = ['controller', 'api', 'ingest', 'delivery', 'standalone'] as const;
/** A process of an installation that stays. */
export type ConnectedRole = (typeof roles)[number];

/** Identity of a process: its role, the key prefix of its installation, and the version of its release. */
export interface ProcessIdentity {
  role: ConnectedRole;
  prefix: string;
  version: string;
}

/**
 * Name of the first connection of a process: from it Redis lists the processes, their layouts and versions. Earlier releases name no
 * version, and pass over names with one, whose layouts are no lower than theirs.
 */
export function processName({ role, prefix, version }: ProcessIdentity): string {
  return `posthorn-${role}-main@${storeLayout}@${encodeURIComponent(prefix)}@${encodeURIComponent(version)}`;
}

const named = new RegExp(`^posthorn-(${roles.join('|')})-main@(\\d+)@([^\\s@]*)(?:@(\\S+))?$`);

export interface ConnectedProcess {
  role: string;
  /** Supported by its release. */
  layout: number;
  /** Null: its release omits it. */
  version: string | null;
  /** Without the port. */
  address: string;
  connectedSeconds: number;
}

/**
 * The processes that are connected to Redis now. Throws INVALID_CONFIG when Redis does not let its clients be listed, UNAVAILABLE when it does not
 * answer.
 */
export async function connectedProcesses({ redis, prefix }: { redis: RedisClient; prefix: string }): Promise<ConnectedProcess[]> {
  // A process connects to each primary of a Cluster, under one name.
  const most = new Map<string, ConnectedProcess[]>();
  for (const server of mastersOf(redis)) {
    const clients = await server.call('CLIENT', 'LIST').catch((error: unknown) => {
      throw refusesListing(error) ? cannotList(error) : redisUnavailable(error);
    });
    const here = Map.groupBy(
      String(clients)
        .split('\n')
        .flatMap((line) => processOf(line, server.options.db ?? 0, encodeURIComponent(prefix))),
      ({ role, address, layout, version }) => `${role} ${address} ${layout} ${version}`,
    );
    for (const [key, found] of here) if (found.length > (most.get(key)?.length ?? 0)) most.set(key, found);
  }
  return [...most.values()].flat();
}

/** Reads the process in a line of CLIENT LIST; empty: it is no process of this installation. */
function processOf(line: string, db: number, encodedPrefix: string): ConnectedProcess[] {
  // Others may have thousands of clients there.
  if (!line.includes('-main@')) return [];
  const client = fieldsOf(line);
  const [, role, layout, prefix, version] = named.exec(client.get('name') ?? '') ?? [];
  if (role === undefined || prefix !== encodedPrefix || client.get('db') !== String(db)) return [];
  const address = (client.get('addr') ?? '').replace(/:\d+$/, '');
  const connectedSeconds = Number(client.get('age'));
  return [{ role, layout: Number(layout), version: version === undefined ? null : decodeURIComponent(version), address, connectedSeconds }];
}

function refusesListing(error: unknown): boolean {
  return error instanceof Error && /^(NOPERM|ERR unknown (sub)?command)/i.test(error.message);
}

function cannotList(cause: unknown): PosthornError {
  return new PosthornError(
    'INVALID_CONFIG',
    'Redis does not list its clients, so processes of an earlier release cannot be ruled out: allow the command CLIENT LIST',
    { cause },
  );
}

/** The processes of releases that do not support the layout of this one, as `<role> at <address>`. Rejects as `connectedProcesses` does. */
export async function earlierProcesses(place: { redis: RedisClient; prefix: string }): Promise<string[]> {
  const all = await connectedProcesses(place);
  const found = all.filter(({ layout }) => layout < storeLayout).map(({ role, address }) => `${role} at ${address}`);
  return [...new Set(found)].sort();
}

/** Returns the fields of a line of CLIENT LIST: `id=3 addr=10.0.0.7:41022 name=… db=0 …`. */
function fieldsOf(line: string): ReadonlyMap<string, string> {
  return new Map(
    line.split(' ').map((field) => {
      const at = field.indexOf('=');
      return [field.slice(0, at), field.slice(at + 1)];
    }),
  );
}
