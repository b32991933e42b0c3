import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Redis } from 'ioredis';
import { SteadySender } from '../../hack/chaos/steady-sender.ts';
import { checkShards } from '../../src/data/check/shard-check.ts';
import type { RedisAddress } from '../../src/redis/address.ts';
import { commandConnection } from '../../src/redis/connection.ts';
import { fetchProgrammed } from '../support/api-writes.ts';
import { type CertificateAuthority, createCertificateAuthority } from '../support/certificate-authority.ts';
import { eventually } from '../support/eventually.ts';
import { type Program, startStandalone } from '../support/program.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { startRedis } from '../support/redis.ts';
import { startRedisCluster, startRedisSentinel } from '../support/redis-group.ts';

const perSecond = 20;
const patienceMs = 60_000;
const users = readFileSync(new URL('../../config/redis/users.acl', import.meta.url), 'utf8');
const rules = /^user posthorn (.+)$/m.exec(users)?.[1]?.split(' ') ?? [];
const roles = ['standalone', 'controller', 'api', 'ingest', 'delivery'];

let directory: string;
let receiver: Receiver;
let authority: CertificateAuthority;
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'posthorn-credentials-'));
  receiver = await startReceiver();
  authority = createCertificateAuthority();
});
afterAll(async () => {
  await receiver.close();
  authority.remove();
  rmSync(directory, { recursive: true, force: true });
});

interface Servers {
  address: RedisAddress;
  /** Connections of an administrator to all servers that have users. */
  admins: readonly Redis[];
  environment: Record<string, string>;
  stop(): Promise<void>;
}

const servers: Record<RedisAddress['mode'], () => Promise<Servers>> = {
  single: async () => {
    const redis = await startRedis();
    return { address: { mode: 'single', url: redis.url }, admins: [redis.client], environment: {}, stop: () => redis.stop() };
  },
  cluster: async () => {
    const group = await startRedisCluster();
    return {
      address: { mode: 'cluster', url: `redis://${group.hosts}` },
      admins: group.nodes.map(({ client }) => client),
      environment: {},
      stop: () => group.stop(),
    };
  },
  sentinel: async () => {
    const { key, cert } = authority.issue(['127.0.0.1']);
    const group = await startRedisSentinel({ tls: { key, cert, caFile: authority.file }, users });
    const tls = { ca: [readFileSync(authority.file, 'utf8')] };
    return {
      address: { mode: 'sentinel', url: `rediss://${group.sentinels}`, sentinel: { master: 'queue' }, tls },
      admins: group.nodes.map(({ client }) => client),
      environment: { POSTHORN_REDIS_SENTINEL_MASTER: 'queue', POSTHORN_REDIS_CA_FILE: authority.file },
      stop: () => group.stop(),
    };
  },
};

const withLogin = (url: string, password: string): string => url.replace('://', `://posthorn:${password}@`);

/** Lines that the processes have logged from this position on, by role. */
function linesOf(program: Program, from: number): { role: string; msg: string; reason?: string }[] {
  return program
    .output()
    .slice(from)
    .split('\n')
    .flatMap((line) => (line.startsWith('{') && line.endsWith('}') ? [JSON.parse(line)] : []));
}

test.each(['single', 'cluster', 'sentinel'] as const)(
  'a password of Redis (%s) in a file is rotated under load: every connection of every role comes back with it, and no event is lost',
  async (mode) => {
    const { address, admins, environment, stop } = await servers[mode]();
    const everywhere = (...command: [string, ...string[]]) => Promise.all(admins.map((admin) => admin.call(...command)));
    const setUser = (...changes: string[]) => everywhere('ACL', 'SETUSER', 'posthorn', ...changes);
    const cut = () => everywhere('CLIENT', 'KILL', 'USER', 'posthorn');
    const file = join(directory, `${mode}-url`);
    const put = (password: string) => writeFileSync(file, `${withLogin(address.url, password)}\n`);
    /** Names of the connections that there are, each as often as there are. */
    const connections = async (): Promise<string[]> => {
      const lists = await everywhere('CLIENT', 'LIST');
      const names = lists.flatMap((list) => [...String(list).matchAll(/ name=(posthorn-\S+) .* user=posthorn /g)].map(([, name]) => name));
      // Which nodes of a Cluster a connection has been to is another matter.
      return (mode === 'cluster' ? [...new Set(names)] : names)
        .map(String)
        .filter((name) => !name.includes('subscriber'))
        .sort();
    };
    await setUser('reset', ...rules, 'resetpass', '>one');
    put('one');
    const standalone = await startStandalone({
      environment: {
        POSTHORN_REDIS_URL_FILE: file,
        POSTHORN_REDIS_MODE: mode,
        POSTHORN_SHARDS: '4',
        POSTHORN_LOG_LEVEL: 'info',
        ...environment,
      },
    });
    const { program, url, key } = standalone;
    const redis = commandConnection({ ...address, url: withLogin(address.url, 'three') }, { commandTimeoutMs: 30_000 });
    redis.on('error', () => {});
    try {
      const post = async (path: string, body: unknown): Promise<{ id: string }> => {
        const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
        const answer = await fetchProgrammed(`${url}/api${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
        expect(answer.status).toBe(201);
        return (await answer.json()) as { id: string };
      };
      const source = await post('/sources', { name: 'shop', provider: 'generic' });
      const target = { type: 'http', url: `${receiver.url}/${mode}`, retryPolicy: { maxRetries: 5, initialDelay: 200 } };
      const destination = await post('/destinations', { name: 'target', ...target });
      await post('/routes', { name: 'route', sourceId: source.id, destinationIds: [destination.id] });
      const sender = new SteadySender(`${url}/ingest/default/shop`, perSecond);
      sender.start();
      const accepts = async (more: number): Promise<void> => {
        const before = sender.accepted.size;
        await eventually(`${more} more events to be accepted`, patienceMs, () => sender.accepted.size >= before + more);
      };
      await accepts(perSecond);
      const before = await connections();
      expect(new Set(before.map((name) => name.split('-')[1]))).toEqual(new Set(roles));
      const areBack = () => eventually(async () => expect(await connections()).toEqual(before), patienceMs);

      // Both passwords are right until all have the new one.
      await setUser('>two');
      put('two');
      await setUser('<one');
      await cut();
      await areBack();
      await accepts(perSecond);

      // The file comes late, and is wrong before it is right.
      let from = program.output().length;
      await setUser('resetpass', '>three');
      await cut();
      const refused = () => new Set(linesOf(program, from).flatMap(({ role, reason }) => (reason?.includes('WRONGPASS') ? [role] : [])));
      await eventually(() => expect(refused()).toEqual(new Set(roles)), patienceMs);
      from = program.output().length;
      writeFileSync(file, 'no URL');
      const unread = /"reason":"POSTHORN_REDIS_URL_FILE: must be redis:/;
      await eventually('the log to say that the file holds no URL', patienceMs, () => unread.test(program.output().slice(from)));
      put('three');
      await areBack();
      await accepts(2 * perSecond);
      await sender.stop();

      await redis.connect();
      await eventually('everything to be delivered', patienceMs, async () => {
        return (await checkShards({ redis, prefix: 'posthorn:', shards: 4 })).unfinished === 0;
      });
      const bodies = receiver.requests.filter(({ path }) => path === `/${mode}`).map(({ body }) => JSON.parse(body.toString()));
      const arrived = new Set(bodies.map(({ number }: { number: number }) => number));
      expect([...sender.accepted].filter((number) => !arrived.has(number))).toEqual([]);
      expect((await checkShards({ redis, prefix: 'posthorn:', shards: 4 })).findings).toEqual([]);
      expect(linesOf(program, 0).filter(({ msg }) => msg.includes('restarting'))).toEqual([]);
      expect(program.output()).not.toMatch(/:(one|two|three)@/);
    } finally {
      redis.disconnect();
      await standalone.stop();
      await stop();
    }
  },
  300_000,
);
