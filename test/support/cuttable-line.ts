import { connect, createServer, type Socket } from 'node:net';

/** A TCP line to a server that can be cut and restored. */
export interface CuttableLine {
  readonly port: number;
  /** Resets all connections and refuses new ones. */
  cut(): void;
  mend(): void;
  /** Resets the connection on which the server sends this next, instead of passing that on; resolves when it has. Only once. */
  swallow(said: string): Promise<void>;
  stop(): Promise<void>;
}

export async function startCuttableLine(target: { host: string; port: number }): Promise<CuttableLine> {
  const sockets = new Set<Socket>();
  let isCut = false;
  let unwanted: { said: string; swallowed: () => void } | null = null;
  const server = createServer((near) => {
    if (isCut) {
      near.resetAndDestroy();
      return;
    }
    const far = connect(target);
    // Before the pipe, which passes nothing on to a connection that is gone.
    far.on('data', (chunk: Buffer) => {
      if (unwanted === null || !chunk.includes(unwanted.said)) return;
      near.resetAndDestroy();
      unwanted.swallowed();
      unwanted = null;
    });
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(one);
      one.on('error', () => {});
      one.on('close', () => {
        sockets.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const drop = (): void => {
    for (const socket of sockets) socket.resetAndDestroy();
  };
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    cut: () => {
      isCut = true;
      drop();
    },
    mend: () => {
      isCut = false;
    },
    swallow: (said) =>
      new Promise((swallowed) => {
        unwanted = { said, swallowed };
      }),
    stop: async () => {
      drop();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
