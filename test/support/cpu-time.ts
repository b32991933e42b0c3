/** Milliseconds of processor time that `run` takes on this thread: unlike time on the clock, other programs do not lengthen it. */
export function cpuMs(run: () => void): number {
  const before = process.threadCpuUsage();
  run();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}
