import { randomBytes, randomInt } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Port numbers from `first` to `last`. */
export interface PortRange {
  first: number;
  last: number;
}

/** Below are the ports of well-known servers, above the node ports of a Kubernetes cluster. */
const wanted: PortRange = { first: 16_000, last: 29_999 };
/** Range of Linux, where the system does not report another one; macOS begins later. */
const usualEphemeral: PortRange = { first: 32_768, last: 65_535 };
const minPorts = 1000;
const choices = 50;
/** How often a server is started whose port was taken before it could bind it. */
const starts = 5;
/** No suite holds a server that long. */
const reservedMs = 30 * 60_000;
const reservations = join(tmpdir(), 'posthorn-test-ports-of');

/** Where a test occupies the chosen port before its server binds it. */
export const portFaults = { afterChoice: async (_port: number): Promise<void> => undefined };

/**
 * A free TCP port, which no other suite, bench or script gets while `ownerPid` lives. It is outside the range from which the system takes ports
 * for outgoing connections and for servers that request any port. A server that reports its port is better given any port (0).
 */
export async function freePort(ownerPid = process.pid): Promise<number> {
  const { first, last } = portsOutside(ephemeralPorts());
  for (let i = 0; i < choices; i++) {
    const port = randomInt(first, last + 1);
    if (!reservePort(port, { ownerPid }) || !(await isFree(port))) continue;
    await portFaults.afterChoice(port);
    return port;
  }
  throw new Error(`no free port in ${choices} tries`);
}

/** Starts a server on a free port, and again on another one when its error reports that the port was taken before it could bind it. */
export async function onFreePort<T>(start: (port: number) => Promise<T>): Promise<T> {
  for (let i = 1; ; i++) {
    try {
      return await start(await freePort());
    } catch (error) {
      if (i === starts || !saysPortIsTaken(error)) throw error;
    }
  }
}

/** The largest part of the usable ports that the system does not give to others; all of them where it may give any. */
export function portsOutside(ephemeral: PortRange): PortRange {
  const below = { first: wanted.first, last: Math.min(wanted.last, ephemeral.first - 1) };
  const above = { first: Math.max(wanted.first, ephemeral.last + 1), last: ephemeral.last < wanted.first ? wanted.last : 65_535 };
  const size = ({ first, last }: PortRange): number => last - first + 1;
  return [below, above].find((range) => size(range) >= minPorts) ?? wanted;
}

function ephemeralPorts(): PortRange {
  try {
    const [first = Number.NaN, last = Number.NaN] = readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8')
      .trim()
      .split(/\s+/)
      .map(Number);
    return { first, last };
  } catch {
    return usualEphemeral;
  }
}

/**
 * Whether the port is `ownerPid`'s from now on. Suites run in several processes: each puts a file of its own into the directory of the port, and
 * then checks for those of others; of two who come together one at least sees the other. A file that may count is never removed.
 */
export function reservePort(port: number, { ownerPid = process.pid, directory = reservations } = {}): boolean {
  const ofPort = join(directory, String(port));
  const own = `${ownerPid}.${randomBytes(4).toString('hex')}`;
  mkdirSync(ofPort, { recursive: true });
  writeFileSync(join(ofPort, own), '');
  const others = readdirSync(ofPort).filter((name) => name !== own);
  const isTaken = others.some((name) => counts(join(ofPort, name), Number.parseInt(name, 10)));
  for (const name of isTaken ? [own] : others) rmSync(join(ofPort, name), { force: true });
  return !isTaken;
}

function counts(file: string, ownerPid: number): boolean {
  const reservedAtMs = statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  return Date.now() - reservedAtMs < reservedMs && isRunning(ownerPid);
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}

/** Bound to one address or to all: a listener there on any of them is found. */
function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, () => server.close(() => resolve(true)));
  });
}

/** The messages of servers that tests start: Go, Redis, Node, Posthorn. */
const portIsTaken = /address already in use|EADDRINUSE|port \d+( of \S+)? is in use/i;

function saysPortIsTaken(error: unknown): boolean {
  return error instanceof Error && (portIsTaken.test(error.message) || saysPortIsTaken(error.cause));
}
