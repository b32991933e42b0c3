/** Half of the threads of libuv look up names of hosts, each for as long as a name server is silent. */
const threads = '64';
const variable = 'UV_THREADPOOL_SIZE';

/** Takes effect before libuv uses its threads for the first time. */
export function setLookupThreads(): void {
  process.env[variable] ??= threads;
}

/** How many threads libuv has. */
export function lookupThreads(): number {
  const configured = Number(process.env[variable]);
  return Number.isInteger(configured) && configured > 0 ? configured : 4;
}
