import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';

export interface PacedRequest {
  head: string;
  bytes: number;
  /** Written at a time, one piece each 2 ms. */
  pieceBytes?: number;
}

/** Sends a request as simple clients do, which read nothing before all is written; returns what comes back. Rejects when it cannot write. */
export async function sendPaced(port: number, { head, bytes, pieceBytes = 32 * 1024 }: PacedRequest): Promise<string> {
  const socket = connect(port, '127.0.0.1').on('error', () => {});
  try {
    await once(socket, 'connect');
    socket.setNoDelay(true).write(head);
    for (let left = bytes; left > 0; left -= pieceBytes) {
      const piece = Buffer.alloc(Math.min(left, pieceBytes), 'x');
      await new Promise<void>((resolve, reject) => socket.write(piece, (error) => (error == null ? resolve() : reject(error))));
      await sleep(2);
    }
    return await text(socket);
  } finally {
    socket.destroy();
  }
}
