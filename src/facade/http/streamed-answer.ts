import { once } from 'node:events';
import type { ServerResponse } from 'node:http';

/** An answer that is sent as it is made, so that it needs no memory for the whole. */
export class StreamedAnswer {
  readonly headers: Readonly<Record<string, string>>;
  readonly pieces: AsyncIterable<string | Uint8Array>;

  /** Breaks the answer off when it aborts, whether or not the client reads. */
  readonly broken: AbortSignal | undefined;

  constructor(headers: Readonly<Record<string, string>>, pieces: AsyncIterable<string | Uint8Array>, broken?: AbortSignal) {
    this.headers = headers;
    this.pieces = pieces;
    this.broken = broken;
  }
}

/** The pieces of a payload. Throws `gone()` where the rest is no longer stored: a null piece. */
export async function* completePieces(pieces: AsyncIterable<Buffer | null>, gone: () => Error): AsyncGenerator<Buffer> {
  for await (const piece of pieces) {
    if (piece === null) throw gone();
    yield piece;
  }
}

/** A client that reads nothing for so long is given up. */
const stalledMs = 60_000;

/**
 * Sends the pieces as fast as the client reads them. What fails before the first piece rejects with nothing sent; what fails later rejects, too,
 * and the answer then must be aborted, so that it is not taken for whole.
 */
export async function sendStreamed(response: ServerResponse, { headers, pieces, broken }: StreamedAnswer, status: number): Promise<void> {
  const made = pieces[Symbol.asyncIterator]();
  const breakOff = (): void => void response.destroy();
  broken?.addEventListener('abort', breakOff, { once: true });
  try {
    let next = await made.next();
    response.statusCode = status;
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    response.setTimeout(stalledMs, () => response.destroy());
    // The body of a response to HEAD is never read, and it may have no end.
    while (response.req.method !== 'HEAD' && next.done !== true && !response.destroyed) {
      if (!response.write(next.value)) await readOn(response);
      next = await made.next();
    }
    response.end();
  } finally {
    broken?.removeEventListener('abort', breakOff);
    await made.return?.();
  }
}

/** Resolves when the client has read what was written, or is gone. */
async function readOn(response: ServerResponse): Promise<void> {
  const either = new AbortController();
  const events = ['drain', 'close'].map((event) => once(response, event, { signal: either.signal }).catch(() => undefined));
  await Promise.race(events);
  either.abort();
}
