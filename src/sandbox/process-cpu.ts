import { readFileSync } from 'node:fs';

/** USER_HZ of proc_pid_stat(5), 100 on every Linux of today. */
const msPerTick = 10;

/** Processor time of a process so far in ms, with all its threads; null without /proc. */
export function processCpuMs(pid: number): number | null {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  } catch {
    return null;
  }
  // The name of the program, in brackets, may hold anything; utime and stime are the 12th and 13th field after it.
  const [utime, stime] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 13);
  const ticks = Number(utime) + Number(stime);
  return Number.isNaN(ticks) ? null : ticks * msPerTick;
}
