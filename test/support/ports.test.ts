import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { startControlPlane } from './control-plane.ts';
import { startAzureServer, startGcsServer, startS3Server } from './object-stores.ts';
import { onFreePort, portFaults, portsOutside, reservePort } from './ports.ts';
import { startStandalone } from './program.ts';
import { startRedis } from './redis.ts';
import { startRedisCluster } from './redis-group.ts';
import { startToxiproxy } from './toxiproxy.ts';

const run = promisify(execFile);

describe('the ports that are chosen', () => {
  test.each([
    ['of Linux', { first: 32_768, last: 60_999 }, { first: 16_000, last: 29_999 }],
    ['of macOS', { first: 49_152, last: 65_535 }, { first: 16_000, last: 29_999 }],
    ['that begins within the usual ports', { first: 20_000, last: 65_535 }, { first: 16_000, last: 19_999 }],
    ['that ends early', { first: 10_000, last: 40_000 }, { first: 40_001, last: 65_535 }],
    ['that ends before the usual ports', { first: 1024, last: 4999 }, { first: 16_000, last: 29_999 }],
    ['that leaves nothing', { first: 1024, last: 65_535 }, { first: 16_000, last: 29_999 }],
  ])('the ports that are chosen are outside the range of the system %s', (_, ephemeral, expected) => {
    expect(portsOutside(ephemeral)).toEqual(expected);
  });

  test('the ports that are chosen are given to one process only, also where many ask at once for ports whose owners are gone', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'posthorn-ports-'));
    const ports = Array.from({ length: 300 }, (_, i) => 20_000 + i);
    const longAgo = new Date(0);
    for (const port of ports) {
      mkdirSync(join(directory, String(port)));
      writeFileSync(join(directory, String(port), '1.old'), '');
      utimesSync(join(directory, String(port), '1.old'), longAgo, longAgo);
    }
    const program = `
      const { reservePort } = await import(process.argv[1]);
      const { directory, ports, startAtMs } = JSON.parse(process.argv[2]);
      while (Date.now() < startAtMs);
      const got = ports.filter((port) => reservePort(port, { directory }));
      console.log(JSON.stringify(got));
      for await (const _ of process.stdin);`;
    const task = JSON.stringify({ directory, ports, startAtMs: Date.now() + 3000 });
    const asking = Array.from({ length: 4 }, () =>
      run(process.execPath, ['--input-type=module', '-e', program, new URL('./ports.ts', import.meta.url).pathname, task]),
    );
    // Each lives until all have one.
    await Promise.all(asking.map((asked) => Promise.race([asked, once(asked.child.stdout ?? asked.child, 'data')])));
    for (const { child } of asking) child.stdin?.end();
    const asked = await Promise.all(asking);
    const got = asked.flatMap(({ stdout }) => JSON.parse(stdout) as number[]);
    expect(got.length).toBeGreaterThan(0);
    expect(got.length).toBe(new Set(got).size);
    // Now that those processes have ended, the ports are free again.
    expect(ports.filter((port) => reservePort(port, { directory }))).toEqual(ports);
    expect(ports.filter((port) => reservePort(port, { directory }))).toEqual([]);
    rmSync(directory, { recursive: true });
  });
});

describe('a port that somebody takes before its server binds it', () => {
  const takers: Server[] = [];
  let taken: number[] = [];
  beforeEach(() => {
    taken = [];
    portFaults.afterChoice = async (port) => {
      if (taken.length > 0) return;
      taken.push(port);
      const taker = createServer((socket) => socket.on('error', () => undefined).resume());
      takers.push(taker);
      await new Promise<void>((resolve) => taker.listen(port, '127.0.0.1', resolve));
    };
  });
  afterEach(() => {
    portFaults.afterChoice = async () => undefined;
    for (const taker of takers.splice(0)) taker.close();
  });

  test.each([
    ['a Redis', startRedis],
    ['a Redis Cluster', startRedisCluster],
    ['an S3 server', startS3Server],
    ['a server of Google Cloud Storage', startGcsServer],
    ['a server of Azure Blob Storage', startAzureServer],
    ['Toxiproxy', startToxiproxy],
    ['standalone', startStandalone],
  ])(
    'a port that somebody takes before its server binds it lets %s start on another one',
    async (_, start: () => Promise<{ stop(): Promise<void> }>) => {
      const server = await start();
      expect(taken).toHaveLength(1);
      await server.stop();
    },
    180_000,
  );

  test('a port that somebody takes before its server binds it lets a line of Toxiproxy listen on another one', async () => {
    const toxiproxy = await startToxiproxy();
    taken = [];
    const line = await toxiproxy.lineTo(1);
    expect(taken).toHaveLength(1);
    expect(line.port).not.toBe(taken[0]);
    await toxiproxy.stop();
  });

  test.each([
    ['etcd', 1],
    ['kube-apiserver', 2],
  ])(
    'a port that somebody takes before its server binds it lets %s start on another one',
    async (_, nth) => {
      const { afterChoice } = portFaults;
      let chosen = 0;
      portFaults.afterChoice = async (port) => (++chosen === nth ? afterChoice(port) : undefined);
      const plane = await startControlPlane();
      expect(taken).toHaveLength(1);
      await plane.stop();
    },
    240_000,
  );

  test('a port that somebody takes before its server binds it is given up after five of them, and any other failure at once', async () => {
    let tries = 0;
    const fails = (message: string) => async (): Promise<void> => {
      tries++;
      throw new Error('not up', { cause: new Error(message) });
    };
    await expect(onFreePort(fails('listen tcp 127.0.0.1:1: bind: address already in use'))).rejects.toThrow('not up');
    expect(tries).toBe(5);
    await expect(onFreePort(fails('no such file'))).rejects.toThrow('not up');
    expect(tries).toBe(6);
  });
});
