import { randomInt } from 'node:crypto';
import { mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Below the range from which the system takes ports for outgoing connections and for servers that ask for any port. */
const range = { first: 16_000, end: 32_000 };
const tries = 50;
/** Who has not begun to listen by then has given the port up. */
const reservedMs = 180_000;
const reservations = join(tmpdir(), 'posthorn-test-ports');

/** A free TCP port of the loopback address, which no other suite gets before there was time to listen on it. */
export async function freePort(): Promise<number> {
  mkdirSync(reservations, { recursive: true });
  for (let i = 0; i < tries; i++) {
    const port = randomInt(range.first, range.end);
    if (reserve(port) && (await isFree(port))) return port;
  }
  throw new Error(`no free port in ${tries} tries`);
}

/** Suites run in several processes: a file per port says that it is taken. */
function reserve(port: number): boolean {
  const file = join(reservations, String(port));
  const reservedAtMs = statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  if (Date.now() - reservedAtMs < reservedMs) return false;
  if (reservedAtMs > 0) rmSync(file, { force: true });
  try {
    writeFileSync(file, '', { flag: 'wx' });
    return true;
  } catch {
    return false;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
