/** The longest turn of the event loop while `run` lasts, in milliseconds of processor time of this thread. */
export async function longestTurnMs(run: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  let isOver = false;
  let before = process.threadCpuUsage();
  const look = (): void => {
    longest = Math.max(longest, processorMs(before));
    before = process.threadCpuUsage();
    if (!isOver) setImmediate(look);
  };
  setImmediate(look);
  try {
    await run();
    await new Promise((resolve) => void setImmediate(resolve));
  } finally {
    isOver = true;
  }
  return longest;
}

/** Milliseconds of processor time of this thread since `before`. Other programs lengthen time on the clock far more. */
export function processorMs(before: NodeJS.CpuUsage): number {
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}
