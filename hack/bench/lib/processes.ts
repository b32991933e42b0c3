import { readFileSync } from 'node:fs';

const ticksPerSecond = 100;

/** User and system time of a process in seconds (proc(5), fields 14 and 15). */
export function processorSeconds(pid: number): number {
  const [, after = ''] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ');
  const fields = after.split(' ');
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

export function residentMb(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1] ?? 0) / 1024;
}
