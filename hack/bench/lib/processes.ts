import { readdirSync, readFileSync } from 'node:fs';

const ticksPerSecond = 100;

/** User and system time of a process in seconds (proc(5), fields 14 and 15). */
export function processorSeconds(pid: number): number {
  const [, after = ''] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ');
  const fields = after.split(' ');
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

/** As `processorSeconds`, with the processes that it has started, those that have ended included. */
function processorSecondsOfTree(pid: number): number {
  const [, after = ''] = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ');
  const own = after
    .split(' ')
    .slice(11, 15)
    .reduce((sum, ticks) => sum + Number(ticks), 0);
  const children = readdirSync(`/proc/${pid}/task`).flatMap((thread) => childrenOf(pid, thread));
  return children.reduce((sum, child) => sum + processorSecondsOfTree(child), own / ticksPerSecond);
}

/** None where the thread has ended meanwhile. */
function childrenOf(pid: number, thread: string): number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

/** µs of processor per delivered event since the meter was started. */
export type ProcessorMeter = (delivered: number) => number;

/**
 * Measures, from now on, the processor time (user and system) of these processes and what they start. None of them may end meanwhile: it would
 * take its figure along; those that are started later count from their beginning.
 */
export function meterProcessor(pids: () => readonly number[]): ProcessorMeter {
  const used = (): number => pids().reduce((sum, pid) => sum + processorSecondsOfTree(pid), 0);
  const before = used();
  return (delivered) => ((used() - before) * 1e6) / delivered;
}

export function processorRow(microseconds: number, of = ''): [string, string] {
  return [`${of === '' ? '' : `${of}: `}processor of all processes with Redis`, `${microseconds.toFixed(0)} µs per delivered event`];
}

export function residentMb(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1] ?? 0) / 1024;
}

/** From now on, how many cores these processes and what they start use in the mean. */
export function coresOf(pids: readonly number[]): () => number {
  const used = (): number => pids.reduce((sum, pid) => sum + processorSecondsOfTree(pid), 0);
  return meanOf(used);
}

/** The same of all processes of the machine (proc(5), `/proc/stat`: without `idle` and `iowait`). */
export function busyCores(): () => number {
  const used = (): number => {
    const [, ...fields] = (readFileSync('/proc/stat', 'latin1').split('\n')[0] ?? '').split(/ +/).map(Number);
    const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = fields;
    return (user + nice + system + irq + softirq + steal) / ticksPerSecond;
  };
  return meanOf(used);
}

function meanOf(usedSeconds: () => number): () => number {
  const [before, begunMs] = [usedSeconds(), performance.now()];
  return () => ((usedSeconds() - before) * 1000) / (performance.now() - begunMs);
}
