import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { type CuttableLine, startCuttableLine } from '../../test/support/cuttable-line.ts';
import { eventually } from '../../test/support/eventually.ts';
import { freePort } from '../../test/support/ports.ts';
import { type RedisServer, startRedis } from '../../test/support/redis.ts';
import { PosthornError } from '../core/errors.ts';
import { commandConnection, type RedisClient } from './connection.ts';
import { type ConnectionCheck, gateConnection } from './connection-gate.ts';

/** In the first half of the slots; `otherKey` is in the second. */
const key = 'owner';
const otherKey = 'other';
const [firstHalf, secondHalf] = [
  ['0', '8191'],
  ['8192', '16383'],
] as const;

const check: ConnectionCheck = {
  keys: [key],
  ask: async (redis) => {
    if ((await redis.get(key)) !== null) throw new PosthornError('INVALID_CONFIG', 'another owner');
  },
};

let servers: RedisServer[];
let lines: CuttableLine[];
let client: RedisClient | undefined;
beforeEach(() => {
  servers = [];
  lines = [];
});
afterEach(async () => {
  client?.disconnect();
  await Promise.all([...lines, ...servers].map((each) => each.stop()));
});

async function startNode(...slots: (readonly [string, string])[]): Promise<RedisServer> {
  const own = ['--cluster-enabled', 'yes', '--cluster-port', String(await freePort()), '--cluster-require-full-coverage', 'no'];
  const server = await startRedis(['--save', '', '--appendonly', 'no', ...own]);
  servers.push(server);
  for (const range of slots) await server.client.call('cluster', 'ADDSLOTSRANGE', ...range);
  await server.client.config('SET', 'cluster-announce-ip', '127.0.0.1');
  return server;
}

/** `entry`: the client's first node, from which it reads the others. */
async function connect(port: number, entry: RedisServer): Promise<RedisClient> {
  await eventually('the cluster', 30_000, async () => {
    const state = String(await entry.client.call('cluster', 'INFO'));
    return state.includes('cluster_state:ok') && state.includes('cluster_slots_assigned:16384');
  });
  const made = commandConnection({ mode: 'cluster', url: `redis://127.0.0.1:${port}` });
  client = made;
  made.on('error', () => {});
  gateConnection(made, check);
  await made.connect();
  await eventually('a command', 10_000, async () => (await made.set('before', '1').catch(() => null)) === 'OK');
  return made;
}

test('a command that was under way when the connection to a node broke is not sent to a node that fails the check', async () => {
  const [one, other] = await Promise.all([startNode(firstHalf, secondHalf), startNode(firstHalf, secondHalf)]);
  const target = { host: '127.0.0.1', port: one.port };
  const line = await startCuttableLine(target);
  lines.push(line);
  for (const each of [one, other]) await each.client.config('SET', 'cluster-announce-port', String(line.port));
  await eventually('the other', 30_000, async () => String(await other.client.call('cluster', 'INFO')).includes('cluster_state:ok'));
  await other.client.set(key, 'somebody');
  const gated = await connect(line.port, one);
  const lost = line.swallow('+OK');
  const written = gated.set('written', '1');
  target.port = other.port;
  await Promise.all([lost, expect(written).rejects.toMatchObject({ code: 'UNAVAILABLE' })]);
  expect(await other.client.keys('*')).toEqual([key]);
  await other.client.del(key);
  await eventually('a command', 10_000, async () => (await gated.set('written', '2').catch(() => null)) === 'OK');
});

test('while the node that has the key of the check is down, the others continue', async () => {
  const [away, present] = await Promise.all([startNode(firstHalf), startNode(secondHalf)]);
  const bus = String(await present.client.config('GET', 'cluster-port')).split(',')[1];
  await away.client.call('cluster', 'MEET', '127.0.0.1', String(present.port), String(bus));
  const gated = await connect(present.port, present);
  expect(await gated.set(otherKey, '1')).toBe('OK');
  await away.kill('SIGKILL');
  await expect(gated.get(key)).rejects.toThrow();
  for (let i = 0; i < 10; i++) {
    expect(await gated.incr(otherKey)).toBe(i + 2);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
});
