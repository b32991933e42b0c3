// What Posthorn costs when nothing happens: Redis commands, processor and memory of each process of standalone.
//   node hack/bench/idle.ts [seconds] [shards…]     with 1 and with 16 shards, unless others are named

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../test/support/ports.ts';
import { startProgram } from '../../test/support/program.ts';
import { startRedis } from '../../test/support/redis.ts';
import { buildProgram, builtProgram } from '../lib/built-program.ts';
import { bareRedisPipeline, redisCeilingRow } from './lib/ceilings.ts';
import { withAof } from './lib/redis-options.ts';
import { report } from './lib/report.ts';

const [seconds = 30, ...named] = process.argv.slice(2).map(Number);
const settleMs = 15_000;
const ticksPerSecond = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));

interface Usage {
  role: string;
  residentMb: number;
  /** Pages that processes share, such as the program text of Node, count in parts. */
  proportionalMb: number;
  ticks: number;
}

/** The process and its children, by the last argument of their command line. */
function usageOf(root: number): Map<number, Usage> {
  const found = new Map<number, Usage>();
  for (const entry of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const stat = readFileSync(`/proc/${entry}/stat`, 'latin1');
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      if (Number(entry) !== root && Number(fields[1]) !== root) continue;
      const status = readFileSync(`/proc/${entry}/status`, 'latin1');
      const line = readFileSync(`/proc/${entry}/cmdline`, 'latin1').split('\0').filter(Boolean);
      const proportionalMb = Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${entry}/smaps_rollup`, 'latin1'))?.[1] ?? 0) / 1024;
      const residentMb = Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024;
      found.set(Number(entry), { role: line.at(-1) ?? '', residentMb, proportionalMb, ticks: Number(fields[11]) + Number(fields[12]) });
    } catch {
      // The process has ended.
    }
  }
  return found;
}

async function measure(shards: number): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'posthorn-idle-'));
  const redis = await startRedis(withAof);
  const program = startProgram(
    ['standalone'],
    {
      POSTHORN_REDIS_URL: redis.url,
      POSTHORN_DATA_DIR: directory,
      POSTHORN_PORT: String(await freePort()),
      POSTHORN_REDIS_MEMORY_LIMIT: '1gb',
      POSTHORN_SHARDS: String(shards),
    },
    builtProgram,
  );
  try {
    await program.waitForOutput(/posthorn ready/);
    await sleep(settleMs);
    const commands = new Map<string, number>();
    const monitor = await redis.client.monitor();
    monitor.on('monitor', (_time: string, _command: string[], source: string) => {
      if (source !== 'lua') commands.set(source, (commands.get(source) ?? 0) + 1);
    });
    const before = usageOf(program.pid);
    await sleep(seconds * 1000);
    const after = usageOf(program.pid);
    monitor.disconnect();
    const names = new Map(
      String(await redis.client.client('LIST'))
        .split('\n')
        .map((line) => [/ addr=(\S+)/.exec(line)?.[1] ?? '', / name=(?:posthorn-)?(\w+)/.exec(line)?.[1] ?? '']),
    );
    const byRole = new Map<string, number>();
    for (const [source, count] of commands) {
      const role = names.get(source) ?? 'unknown';
      byRole.set(role, (byRole.get(role) ?? 0) + count);
    }
    const redisMb = Number(/used_memory_rss:(\d+)/.exec(await redis.client.info('memory'))?.[1]) / 1024 / 1024;
    const total = (of: (usage: Usage) => number): string =>
      ([...after.values()].reduce((sum, usage) => sum + of(usage), 0) + redisMb).toFixed(0);
    const rows: [string, string][] = [...after].map(([pid, { role, residentMb, ticks }]) => {
      const cpu = (100 * (ticks - (before.get(pid)?.ticks ?? 0))) / ticksPerSecond / seconds;
      return [`${role}: resident, processor`, `${residentMb.toFixed(0)} MB, ${cpu.toFixed(2)} %`];
    });
    const sums = `${total(({ residentMb }) => residentMb)} MB; ${total(({ proportionalMb }) => proportionalMb)} MB`;
    rows.push(['all processes and Redis: resident; with shared pages counted once', sums]);
    for (const [role, count] of byRole) rows.push([`Redis commands of ${role}`, `${(count / seconds).toFixed(2)}/s`]);
    rows.push(redisCeilingRow(await bareRedisPipeline()));
    report(`idle-${shards}`, `standalone, ${shards} ${shards === 1 ? 'shard' : 'shards'}, idle for ${seconds} s`, rows);
  } finally {
    await program.stop();
    await redis.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}

buildProgram();
for (const shards of named.length > 0 ? named : [1, 16]) await measure(shards);
