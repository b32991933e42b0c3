import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis, type RedisOptions } from 'ioredis';
import { commandConnection, type RedisClient } from '../../src/redis/connection.ts';
import { eventually } from './eventually.ts';
import { freePort, onFreePort } from './ports.ts';
import { type ServerProcess, spawnServer } from './server-process.ts';

export interface RedisNode {
  readonly port: number;
  readonly client: Redis;
  kill(): Promise<void>;
  /** Freezes the process: its connections stay, and nothing is answered. Returns the resume function. */
  freeze(): () => void;
  /** Starts it again after `kill`, on the same port, with these options more. */
  start(more?: readonly string[]): Promise<void>;
}

/** Redis servers that belong together. */
export interface RedisGroup {
  readonly nodes: readonly RedisNode[];
  /** `host:port,…` as given to a client. */
  readonly hosts: string;
  /** The nodes that are masters now. */
  masters(): Promise<RedisNode[]>;
  stop(): Promise<void>;
}

const deadlineMs = 60_000;
/** How long a server may be silent until it is replaced: longer than a busy machine stops one that lives. */
const silenceMs = 3000;
/** Many at once: who writes meanwhile must not be faster than the move. */
const keysPerMove = 500;
const common = [
  '--bind',
  '127.0.0.1',
  '--save',
  '',
  '--appendonly',
  'no',
  '--maxmemory-policy',
  'noeviction',
  '--stream-node-max-bytes',
  '512',
  '--repl-diskless-sync-delay',
  '0',
];

/** `args` has the port of clients, and where the node requires one that of the cluster bus. */
async function startNode(
  directory: string,
  args: (port: number, busPort: number) => readonly string[],
  connect: RedisOptions = {},
): Promise<RedisNode> {
  const run = async (client: Redis, ports: [number, number], more: readonly string[]): Promise<ServerProcess> => {
    const server = spawnServer('redis-server', [...args(...ports), ...more], directory);
    await server.untilUp(ports[0], async () => (await client.info('server')) !== '');
    return server;
  };
  const first = await onFreePort(async (port) => {
    const client = new Redis({ host: '127.0.0.1', port, lazyConnect: true, maxRetriesPerRequest: 0, retryStrategy: () => 50, ...connect });
    client.on('error', () => {});
    const ports: [number, number] = [port, await freePort()];
    try {
      return { client, ports, server: await run(client, ports, []) };
    } catch (error) {
      client.disconnect();
      throw error;
    }
  });
  const { client, ports } = first;
  let { server } = first;
  return {
    port: ports[0],
    client,
    kill: async () => {
      client.disconnect();
      await server.stop('SIGKILL');
    },
    freeze: () => {
      const frozen = server;
      frozen.signal('SIGSTOP');
      return () => frozen.signal('SIGCONT');
    },
    start: async (more = []) => {
      // Until it listens this fails, and is tried again.
      client.connect().catch(() => undefined);
      server = await run(client, ports, more);
    },
  };
}

async function mastersAmong(nodes: readonly RedisNode[]): Promise<RedisNode[]> {
  const roles = await Promise.all(nodes.map(({ client }) => client.info('replication').catch(() => '')));
  return nodes.filter((_, i) => roles[i]?.includes('role:master'));
}

/** Whether the node has the slot of the key: others redirect the client. */
export async function hasKey({ client }: RedisNode, key: string): Promise<boolean> {
  return await client.type(key).then(
    () => true,
    () => false,
  );
}

/** The lines of CLUSTER NODES, one for each node. */
async function knownNodes(client: Redis): Promise<string[]> {
  return String(await client.cluster('NODES'))
    .trim()
    .split('\n');
}

/** A client of a Redis Cluster that answers; `login`: `user:password` of a user with a right on keys that begin with `posthorn:`. */
export async function clusterClient({ hosts }: RedisGroup, login?: string): Promise<RedisClient> {
  const client = commandConnection({ mode: 'cluster', url: `redis://${login === undefined ? '' : `${login}@`}${hosts}` });
  client.on('error', () => {});
  await client.connect();
  await eventually('the cluster', deadlineMs, async () => (await client.get('posthorn:x').catch(() => '')) === null);
  return client;
}

/** A Redis Cluster of three masters with a replica each. */
export async function startRedisCluster(): Promise<RedisGroup> {
  const directory = mkdtempSync(join(tmpdir(), 'posthorn-cluster-'));
  const nodes = await Promise.all(
    Array.from({ length: 6 }, () =>
      startNode(directory, (port, bus) => {
        const own = ['--port', `${port}`, '--cluster-port', `${bus}`, '--cluster-config-file', `nodes-${port}.conf`];
        // Before its first ping a replica without a master is not reported.
        const settings = [
          '--cluster-node-timeout',
          `${silenceMs}`,
          '--cluster-require-full-coverage',
          'no',
          '--repl-ping-replica-period',
          '1',
        ];
        return [...common, ...own, '--cluster-enabled', 'yes', ...settings];
      }),
    ),
  );
  const stop = async (): Promise<void> => {
    await Promise.all(nodes.map((node) => node.kill()));
    rmSync(directory, { recursive: true, force: true });
  };
  try {
    await joinCluster(nodes);
  } catch (error) {
    await stop();
    throw error;
  }
  return { nodes, hosts: nodes.map(({ port }) => `127.0.0.1:${port}`).join(','), masters: () => mastersAmong(nodes), stop };
}

/** The first half become masters, the others a replica of each, and all know that of all. */
async function joinCluster(nodes: readonly RedisNode[]): Promise<void> {
  const clients = nodes.map(({ client }) => client);
  const [first, ...others] = nodes;
  const masters = clients.slice(0, nodes.length / 2);
  const replicas = clients.slice(nodes.length / 2);
  const slots = [0, 5461, 10923, 16384];
  for (const [i, client] of masters.entries()) await client.call('CLUSTER', 'ADDSLOTSRANGE', slots[i] ?? 0, (slots[i + 1] ?? 0) - 1);
  for (const { client, port } of others) {
    const bus = /cluster_port|@(\d+)/.exec(String(await client.cluster('NODES')))?.[1] ?? '';
    await first?.client.call('CLUSTER', 'MEET', '127.0.0.1', port, bus);
  }
  const ids = await Promise.all(clients.map(async (client) => String(await client.cluster('MYID'))));
  // One that has not answered yet goes by another id.
  const knowsAll = (known: readonly string[]): boolean =>
    known.length === ids.length && ids.every((id) => known.some((node) => node.startsWith(`${id} `) && !node.includes('handshake')));
  await eventually('the nodes to know each other', deadlineMs, async () => (await Promise.all(clients.map(knownNodes))).every(knowsAll));
  for (const [i, client] of replicas.entries()) await client.call('CLUSTER', 'REPLICATE', ids[i] ?? '');
  await eventually('the cluster to be up', deadlineMs, async () => {
    const states = await Promise.all(clients.map((client) => client.cluster('INFO')));
    const linked = await Promise.all(replicas.map((client) => client.info('replication')));
    const known = await Promise.all(clients.map(knownNodes));
    const offered = await Promise.all(clients.map(offeredNodes));
    const isUp =
      states.every((state) => String(state).includes('cluster_state:ok')) &&
      linked.every((link) => link.includes('master_link_status:up')) &&
      known.every((told) => told.filter((node) => node.includes('slave')).length === replicas.length) &&
      offered.every((ids) => ids.size === nodes.length);
    return isUp;
  });
}

/** Ids of the nodes that a client is given: a replica only once its offset is known. */
async function offeredNodes(client: Redis): Promise<Set<string>> {
  const ranges = await client.cluster('SLOTS');
  return new Set(ranges.flatMap(([, , ...servers]) => servers.map(([, , id]) => id)));
}

/**
 * Moves the slots of these keys from the first master that has one to another, as `redis-cli --cluster reshard` does; returns how
 * many. All in one direction: slots that move to and fro faster than the nodes notify each other end with two owners.
 */
export async function moveSlots(
  cluster: RedisGroup,
  keys: readonly string[],
  /** Called while the keys have moved and their slot has not: clients are redirected by ASK. */
  between: () => Promise<unknown> = async () => undefined,
): Promise<number> {
  const masters = await cluster.masters();
  const slots = await Promise.all(keys.map(async (key) => Number(await masters[0]?.client.cluster('KEYSLOT', key))));
  const owners = await Promise.all(
    masters.map(async (node) => ({ node, id: String(await node.client.cluster('MYID')), slots: await ownSlots(node) })),
  );
  const owns = ({ slots: ranges }: (typeof owners)[number], slot: number): boolean =>
    ranges.some(([first, last]) => first <= slot && slot <= last);
  const from = owners.find((owner) => slots.some((slot) => owns(owner, slot)));
  const to = owners.find((owner) => owner !== from);
  if (from === undefined || to === undefined) throw new Error('nobody has these slots');
  const moving = slots.filter((slot) => owns(from, slot));
  for (const slot of moving) {
    await to.node.client.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', from.id);
    await from.node.client.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', to.id);
    for (;;) {
      const inSlot = (await from.node.client.call('CLUSTER', 'GETKEYSINSLOT', slot, keysPerMove)) as string[];
      if (inSlot.length === 0) break;
      await from.node.client.call('MIGRATE', '127.0.0.1', to.node.port, '', 0, 5000, 'KEYS', ...inSlot);
    }
    await between();
    for (const { node } of [to, from, ...owners]) await node.client.call('CLUSTER', 'SETSLOT', slot, 'NODE', to.id);
  }
  return moving.length;
}

async function ownSlots({ client }: RedisNode): Promise<[number, number][]> {
  const own =
    String(await client.cluster('NODES'))
      .split('\n')
      .find((line) => line.includes('myself')) ?? '';
  return own
    .split(' ')
    .slice(8)
    .filter((range) => !range.startsWith('['))
    .map((range) => {
      const [first, last = first] = range.split('-').map(Number);
      return [first ?? 0, last ?? 0];
    });
}

export interface SentinelOptions {
  /** Files and texts of the servers' certificate and of the authority that made it. */
  tls: { key: Buffer; cert: Buffer; caFile: string };
  /** Text of the ACL file; `admin` is added for the servers themselves. */
  users: string;
}

/** A master with a replica, and three sentinels; all of them use TLS only, and the servers have only the users given. */
export async function startRedisSentinel({ tls, users }: SentinelOptions): Promise<RedisGroup & { sentinels: string }> {
  const directory = mkdtempSync(join(tmpdir(), 'posthorn-sentinel-'));
  writeFileSync(join(directory, 'server.key'), tls.key);
  writeFileSync(join(directory, 'server.crt'), tls.cert);
  writeFileSync(join(directory, 'users.acl'), `${users.trim()}\nuser admin on >admin ~* &* +@all\n`);
  const tlsArgs = ['--tls-cert-file', 'server.crt', '--tls-key-file', 'server.key', '--tls-ca-cert-file', tls.caFile];
  const secured = ['--port', '0', ...tlsArgs, '--tls-replication', 'yes', '--tls-auth-clients', 'no'];
  const connect: RedisOptions = { tls: { rejectUnauthorized: false } };
  const admin: RedisOptions = { ...connect, username: 'admin', password: 'admin' };
  const serverArgs = (port: number): string[] => [
    ...[...common, ...secured, '--tls-port', `${port}`, '--aclfile', 'users.acl', '--dbfilename', `${port}.rdb`],
    ...['--masteruser', 'admin', '--masterauth', 'admin'],
  ];
  const master = await startNode(directory, serverArgs, admin);
  const replica = await startNode(directory, (port) => [...serverArgs(port), '--replicaof', `127.0.0.1 ${master.port}`], admin);
  await eventually('the replica to follow', deadlineMs, async () =>
    (await replica.client.info('replication')).includes('master_link_status:up'),
  );
  const sentinels = await Promise.all(
    Array.from({ length: 3 }, (_, i) =>
      startNode(
        directory,
        (port) => {
          const file = join(directory, `sentinel-${i}.conf`);
          const settings = [
            `tls-port ${port}\nport 0\nbind 127.0.0.1\ntls-replication yes\ntls-auth-clients no`,
            `tls-cert-file server.crt\ntls-key-file server.key\ntls-ca-cert-file ${tls.caFile}`,
            `sentinel monitor queue 127.0.0.1 ${master.port} 2\nsentinel auth-user queue admin\nsentinel auth-pass queue admin`,
            `sentinel down-after-milliseconds queue ${silenceMs}\nsentinel failover-timeout queue 10000`,
          ];
          writeFileSync(file, `${settings.join('\n')}\n`);
          return [file, '--sentinel'];
        },
        connect,
      ),
    ),
  );
  await eventually('the sentinels to know each other', deadlineMs, async () => {
    const known = await Promise.all(sentinels.map(({ client }) => client.info('sentinel')));
    return known.every((text) => /slaves=1,sentinels=3/.test(text));
  });
  const nodes = [master, replica];
  return {
    nodes,
    hosts: nodes.map(({ port }) => `127.0.0.1:${port}`).join(','),
    sentinels: sentinels.map(({ port }) => `127.0.0.1:${port}`).join(','),
    masters: () => mastersAmong(nodes),
    stop: async () => {
      await Promise.all([...sentinels, ...nodes].map((node) => node.kill()));
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
