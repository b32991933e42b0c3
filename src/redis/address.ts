import { PosthornError } from '../core/errors.ts';

/** Where Redis is and how it is run. */
export interface RedisAddress {
  mode: RedisMode;
  /**
   * `redis://[user:password@]host[:port][,host[:port]…][/database]`, `rediss://…` for TLS, or the path of a unix socket. With
   * `sentinel` the hosts are those of the sentinels, with `cluster` some nodes of the cluster; credentials are those of Redis.
   */
  url: string;
  sentinel?: { master: string; username?: string; password?: string };
  /** PEM texts, for `rediss://`. */
  tls?: RedisCertificates;
  /** Returns the current value of what may have changed; called at every connect. Absent: nothing changes. */
  current?: () => RedisSecrets;
}

export interface RedisCertificates {
  ca?: string[];
  cert?: string;
  key?: string;
}

/** What can be rotated while a process runs. */
export interface RedisSecrets {
  username: string | undefined;
  password: string | undefined;
  sentinelPassword: string | undefined;
  tls: RedisCertificates;
}

export type RedisMode = 'single' | 'sentinel' | 'cluster';

export interface RedisNodes {
  nodes: { host: string; port: number }[];
  /** Path of the unix socket; null: there are nodes. */
  path: string | null;
  usesTls: boolean;
  username: string | undefined;
  password: string | undefined;
  database: number;
}

const pattern = /^redis(s?):\/\/(?:([^@/]*)@)?([^/?#]+)(?:\/(\d{0,4}))?$/;
const hostPattern = /^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::(\d{1,5}))?$/;

/** The parts of a `RedisAddress.url`. Throws INVALID_CONFIG when it is none; its message holds no credentials. */
export function redisNodes(url: string): RedisNodes {
  if (url.startsWith('/')) return { nodes: [], path: url, usesTls: false, username: undefined, password: undefined, database: 0 };
  const [whole, tls, credentials, hosts = '', database] = pattern.exec(url) ?? [];
  if (whole === undefined) throw invalid();
  const [username, ...rest] = credentials?.split(':') ?? [];
  return {
    nodes: hosts.split(',').map(nodeOf),
    path: null,
    usesTls: tls === 's',
    username: decoded(username),
    password: rest.length === 0 ? undefined : decoded(rest.join(':')),
    database: Number(database ?? '0'),
  };
}

/** Host and port of each node, or the path of the socket: never the password. */
export function describeRedis(url: string): string {
  const { nodes, path } = redisNodes(url);
  return path ?? nodes.map(({ host, port }) => `${host}:${port}`).join(',');
}

function nodeOf(text: string): { host: string; port: number } {
  const [whole, host = '', port = '6379'] = hostPattern.exec(text) ?? [];
  if (whole === undefined || Number(port) > 65_535 || Number(port) === 0) throw invalid();
  return { host: host.replace(/^\[|\]$/g, ''), port: Number(port) };
}

function decoded(text: string | undefined): string | undefined {
  if (text === undefined || text === '') return undefined;
  try {
    return decodeURIComponent(text);
  } catch {
    throw invalid();
  }
}

function invalid(): PosthornError {
  return new PosthornError(
    'INVALID_CONFIG',
    'must be redis://[user:password@]host[:port][,host[:port]…][/database], rediss://… or the path of a unix socket',
  );
}
