import { setTimeout as sleep } from 'node:timers/promises';
import { startToxiproxy, type Toxic, type ToxicLine } from '../../test/support/toxiproxy.ts';
import { type Role, roles } from './installation.ts';

/** A worker that is cut off for ten seconds is dead. */
const shortestMs = 1000;
const longestMs = 5000;

type Stream = Toxic['stream'];
export const faultKinds = ['latency', 'half-open', 'reset', 'slices', 'cut in the middle', 'down'] as const;
type Kind = (typeof faultKinds)[number];

/** `random` gives numbers in [0, 1). */
async function befall(line: ToxicLine, kind: Kind, stream: Stream, random: () => number): Promise<void> {
  const upTo = (most: number): number => Math.round(random() * most);
  switch (kind) {
    case 'latency':
      return await line.add({ type: 'latency', stream, attributes: { latency: 50 + upTo(500), jitter: 50 } });
    case 'half-open':
      return await line.add({ type: 'timeout', stream, attributes: { timeout: 0 } });
    case 'reset':
      return await line.add({ type: 'reset_peer', stream, attributes: { timeout: upTo(500) } });
    case 'slices':
      return await line.add({ type: 'slicer', stream, attributes: { average_size: 64, size_variation: 32, delay: 200 } });
    case 'cut in the middle':
      return await line.add({ type: 'limit_data', stream, attributes: { bytes: 500 + upTo(20_000) } });
    case 'down':
      return await line.cut();
  }
}

interface Fault {
  role: Role;
  kind: Kind;
  stream: Stream;
  lastsMs: number;
}

export interface NetworkFaults {
  /** How often each kind has befallen a line. */
  readonly counts: ReadonlyMap<string, number>;
  /** The port over which the role reaches the server on the other. */
  lineOf(role: Role, port: number): Promise<number>;
  next(): Fault;
  /** Disturbs the line of the role for so long. */
  strike(fault: Fault): Promise<void>;
  stop(): Promise<void>;
}

/** Lines through Toxiproxy that can be disturbed. */
export async function startNetworkFaults(random: () => number): Promise<NetworkFaults> {
  const proxy = await startToxiproxy();
  const lines = new Map<Role, ToxicLine>();
  const counts = new Map<string, number>(faultKinds.map((kind) => [kind, 0]));
  const oneOf = <T>(first: T, ...others: T[]): T => [first, ...others][Math.floor(random() * (others.length + 1))] ?? first;
  return {
    counts,
    lineOf: async (role, port) => {
      const line = await proxy.lineTo(port);
      lines.set(role, line);
      return line.port;
    },
    next: () => ({
      role: oneOf<Role>(...roles),
      kind: oneOf<Kind>(...faultKinds),
      stream: oneOf<Stream>('upstream', 'downstream'),
      lastsMs: shortestMs + random() * (longestMs - shortestMs),
    }),
    strike: async ({ role, kind, stream, lastsMs }) => {
      const line = lines.get(role);
      if (line === undefined) throw new Error(`${role} has no line`);
      counts.set(kind, (counts.get(kind) ?? 0) + 1);
      await befall(line, kind, stream, random);
      await sleep(lastsMs);
      await line.mend();
    },
    stop: () => proxy.stop(),
  };
}
