import { Worker } from 'node:worker_threads';

const body = `
const parent = process.ppid;
setInterval(() => { if (process.ppid !== parent) process.kill(process.pid, 'SIGKILL'); }, 1000);
`;

/** Ends this process when its parent is gone, also while code of a user keeps the main thread busy. */
export function watchParent(): void {
  new Worker(body, { eval: true, env: {}, resourceLimits: { maxOldGenerationSizeMb: 8, maxYoungGenerationSizeMb: 2 } }).unref();
}
