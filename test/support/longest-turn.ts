/**
 * The longest turn of the event loop while `run` goes on, in milliseconds of processor time of this thread: unlike time on the clock, other programs do not
 * lengthen it.
 */
export async function longestTurnMs(run: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  let isOver = false;
  let before = process.threadCpuUsage();
  const look = (): void => {
    const { user, system } = process.threadCpuUsage(before);
    longest = Math.max(longest, (user + system) / 1000);
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
