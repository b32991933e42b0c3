import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { z } from 'zod';
import { commandConnection } from '../../src/redis/connection.ts';
import { eventually } from '../support/eventually.ts';
import { manifests, template } from '../support/helm.ts';
import { freePort } from '../support/ports.ts';
import { type ServerProcess, spawnServer } from '../support/server-process.ts';

/** The Redis of the chart, run by its pod's command, killed in the middle of a write. */
const run = promisify(execFile);
const password = 'secret';
const statefulSet = z.object({ template: z.object({ spec: z.object({ containers: z.array(z.unknown()).length(1) }) }) });
const inPod = z.object({ exec: z.object({ command: z.array(z.string()) }) });
const ping = { exec: { command: ['redis-cli', 'PING'] } };
const redisContainer = z.object({
  command: z.array(z.string()),
  args: z.array(z.string()),
  lifecycle: z.object({ postStart: inPod }),
  livenessProbe: inPod,
  readinessProbe: inPod,
});
/** Two writes of one script, and how often it has run. */
const script = `return { redis.call('INCR', KEYS[1]), redis.call('INCR', KEYS[2]) }`;

let ofDefaults: z.output<typeof redisContainer>;
let container: z.output<typeof redisContainer>;
let directory: string;
let port: number;
let server: ServerProcess;
let client: ReturnType<typeof commandConnection>;

async function containerOf(...args: string[]): Promise<z.output<typeof redisContainer>> {
  const found = manifests(await template(...args)).find(({ kind }) => kind === 'StatefulSet');
  return redisContainer.parse(statefulSet.parse(found?.['spec']).template.spec.containers[0]);
}

beforeAll(async () => {
  ofDefaults = await containerOf();
});
beforeEach(async () => {
  container = ofDefaults;
  directory = mkdtempSync(join(tmpdir(), 'posthorn-redis-of-chart-'));
  for (const name of ['bin', 'data']) mkdirSync(join(directory, name));
  writeFileSync(join(directory, 'redis.conf'), `requirepass ${password}\n`);
  port = await freePort();
  // Redis has its usual port in the pod, and not here.
  const command = `#!/bin/sh\nPATH="\${PATH#*:}" exec redis-cli -p ${port} "$@"\n`;
  writeFileSync(join(directory, 'bin', 'redis-cli'), command, { mode: 0o755 });
  client = commandConnection(`redis://:${password}@127.0.0.1:${port}/0`, { commandTimeoutMs: 10_000 });
  client.on('error', () => {});
});
afterEach(async () => {
  if (client.status !== 'end') client.disconnect();
  await server.stop('SIGKILL');
  rmSync(directory, { recursive: true, force: true, maxRetries: 10 });
});

function startServer(...more: string[]): void {
  const [program = '', configuration = ''] = container.command;
  expect(configuration).toBe('/etc/posthorn-redis/redis.conf');
  const args = container.args.map((arg) => (arg === '/data' ? join(directory, 'data') : arg));
  server = spawnServer(program, [join(directory, 'redis.conf'), ...args, '--port', String(port), ...more], directory);
}

/** What it prints. */
async function runInPod({ exec: { command } }: z.output<typeof inPod>): Promise<string> {
  const [program = '', ...args] = command;
  const env = { PATH: `${join(directory, 'bin')}:${process.env['PATH']}`, REDISCLI_AUTH: password };
  return (await run(program, args, { env })).stdout;
}

/** What Kubernetes runs right after the start, and until it ends the pod is not ready. */
const postStart = (): Promise<string> => runInPod(container.lifecycle.postStart);

async function probes(): Promise<{ isAlive: boolean; isReady: boolean }> {
  const { livenessProbe, readinessProbe } = container;
  const [isAlive, isReady] = await Promise.all(
    [livenessProbe, readinessProbe].map((probe) =>
      runInPod(probe).then(
        () => true,
        () => false,
      ),
    ),
  );
  return { isAlive: isAlive === true, isReady: isReady === true };
}

async function start(...more: string[]): Promise<void> {
  startServer(...more);
  await postStart();
  if (client.status === 'wait') await client.connect();
  await eventually('a connection', 30_000, async () => (await client.ping()) === 'PONG');
}

async function kill(): Promise<void> {
  // Every write before this one is in the file then, also where the disk is slow.
  await client.config('SET', 'appendfsync', 'always');
  await server.stop('SIGKILL');
}

async function persistence(name: string): Promise<string | undefined> {
  return new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(await client.info('persistence'))?.[1];
}

const isRewritten = async (): Promise<boolean> => (await persistence('aof_rewrite_in_progress')) === '0';

/** Id of the process that rewrites the file, which names its own file by it; undefined: there is none. */
function rewriterPid(): number | undefined {
  const pid = /^temp-rewriteaof-(\d+)\.aof$/m.exec(readdirSync(join(directory, 'data')).join('\n'))?.[1];
  return pid === undefined ? undefined : Number(pid);
}

/** Writes, kills Redis, and removes the last bytes of its file. */
async function cutOff(): Promise<void> {
  await start();
  await eventually('the rewrite', 30_000, isRewritten);
  for (let i = 0; i < 2; i++) await client.eval(script, 2, 'a', 'b');
  await kill();
  const files = join(directory, 'data', 'appendonlydir');
  const manifest = readFileSync(join(files, 'appendonly.aof.manifest'), 'utf8').trimEnd().split('\n');
  const last = join(files, manifest.at(-1)?.split(' ')[1] ?? '');
  truncateSync(last, statSync(last).size - 3);
}

test('a Redis that starts requests one rewrite, and listens to others only after that', async () => {
  startServer();
  await server.untilUp(port);
  await eventually(() => client.connect());
  expect(await client.config('GET', 'bind')).toEqual(['bind', '127.0.0.1']);
  expect(await persistence('aof_last_rewrite_time_sec')).toBe('-1');
  await postStart();
  expect(await client.config('GET', 'bind')).toEqual(['bind', '*']);
  await eventually('the rewrite', 30_000, async () => Number(await persistence('aof_last_rewrite_time_sec')) >= 0);
  expect([await persistence('aof_rewrites'), await persistence('aof_last_bgrewrite_status')]).toEqual(['1', 'ok']);
});

test('a Redis listens to others also where the process that rewrites its file still has the port', async () => {
  const program = join(directory, 'bin', 'redis-cli');
  const looked = join(directory, 'looked');
  // The first read of `bind` ends at once, so that the first CONFIG SET meets a process that has just begun, on a busy machine in one start of four.
  const first = `case "$*" in *"CONFIG GET bind"*) [ -e ${looked} ] || { : >${looked}; exit 1; } ;; esac`;
  writeFileSync(program, readFileSync(program, 'utf8').replace('\n', `\n${first}\n`));
  for (let i = 0; i < 10; i++) {
    rmSync(looked, { force: true });
    startServer();
    await postStart();
    expect(await runInPod({ exec: { command: ['redis-cli', 'CONFIG', 'GET', 'bind'] } })).toBe('bind\n*\n');
    const hasMetIt = server.lastOutput().includes('Failed to bind');
    await server.stop('SIGKILL');
    if (hasMetIt) break;
  }
});

test.each([
  ['256 MB', 1, 'size=8Gi', 256],
  ['GB where payloads may be above 1 MiB', 25, 'size=2Gi', 1024],
  ['GB where payloads may be above 1 MiB and there is no volume', 25, 'size=1Gi,redis.bundled.storage.enabled=false', 1024],
  ['256 MB where the volume is below 2 GB', 25, 'size=1900M', 256],
])('a Redis that holds little rewrites its file for every %s', async (_what, payloadMebibytes, storage, mebibytes) => {
  container = await containerOf('--set', `ingest.maxPayloadBytes=${payloadMebibytes * 1_048_576},redis.bundled.storage.${storage}`);
  await start();
  expect(await client.config('GET', 'auto-aof-rewrite-min-size')).toEqual(['auto-aof-rewrite-min-size', String(mebibytes * 1_048_576)]);
});

test('a Redis that listens to nobody else is not ready, and is ended unless it still loads its file', async () => {
  await start('--rdbcompression', 'no');
  expect(await probes()).toEqual({ isAlive: true, isReady: true });
  for (let i = 0; i < 300; i++) await client.set(`key-${i}`, 'x'.repeat(2048));
  await eventually('the end of the rewrite before', 30_000, () => client.bgrewriteaof());
  await eventually('the rewrite', 30_000, async () => (await persistence('aof_rewrites')) === '2' && (await isRewritten()));
  await kill();
  // It loads for a minute, and answers after each key.
  startServer('--key-load-delay', '200000', '--loading-process-events-interval-bytes', '1024');
  await eventually('the loading', 30_000, async () => (await runInPod(ping)).startsWith('LOADING'));
  expect(await probes()).toEqual({ isAlive: true, isReady: false });
  await server.stop('SIGKILL');
  startServer();
  await eventually('the end of the loading', 30_000, async () => (await runInPod(ping)).startsWith('PONG'));
  expect(await probes()).toEqual({ isAlive: false, isReady: false });
  await postStart();
  expect(await probes()).toEqual({ isAlive: true, isReady: true });
});

test('a script cut off in the file is never applied, although Redis is killed twice', async () => {
  await cutOff();
  await start();
  expect(await client.mget('a', 'b')).toEqual(['1', '1']);
  await client.eval(script, 2, 'a', 'b');
  await eventually('the rewrite', 30_000, async () => Number(await persistence('aof_last_rewrite_time_sec')) >= 0);
  await kill();
  await start();
  expect(await client.mget('a', 'b')).toEqual(['2', '2']);
});

test('a script cut off in the file is not applied where Redis is killed before the rewrite has ended: the first start after that ends, the second one works', async () => {
  await cutOff();
  // The rewrite takes a minute for each key.
  await start('--rdb-key-save-delay', '60000000');
  const rewriter = await eventually('the rewrite', 30_000, rewriterPid);
  await client.eval(script, 2, 'a', 'b');
  await kill();
  process.kill(rewriter, 'SIGKILL');
  startServer();
  await eventually('the end of the first start', 30_000, () => server.exited());
  expect(server.lastOutput()).toContain('the truncated file is not the last file');
  await start();
  expect(await client.mget('a', 'b')).toEqual(['2', '2']);
});
