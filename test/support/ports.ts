import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/** Below the range from which the system takes ports for outgoing connections and for servers that ask for any port. */
const range = { first: 16_000, end: 32_000 };
const tries = 50;

/**
 * A TCP port of the loopback address that was free a moment ago. Chosen at random from a range that nothing else draws from, so
 * that suites that run at the same time hardly ever take the same one before it is in use.
 */
export async function freePort(): Promise<number> {
  for (let i = 0; i < tries; i++) {
    const port = randomInt(range.first, range.end);
    if (await isFree(port)) return port;
  }
  throw new Error(`no free port in ${tries} tries`);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
