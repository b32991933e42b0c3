import { createServer, request as forward } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { withLongTimeouts } from './long-timeouts.ts';

export interface SlowAnswers {
  readonly url: string;
  /** Requests that were answered behind it. */
  uploads(): number;
  stop(): void;
}

/** Forwards requests and withholds the answers: a client killed meanwhile never gets the result. */
export async function slowAnswers(origin: string, delayMs: number): Promise<SlowAnswers> {
  let uploads = 0;
  const server = createServer((incoming, outgoing) => {
    const onward = forward(origin + incoming.url, { method: incoming.method, headers: incoming.headers }, async (answer) => {
      uploads++;
      await pause(delayMs);
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    onward.on('error', () => outgoing.destroy());
    incoming.pipe(onward);
  });
  withLongTimeouts(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return {
    url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`,
    uploads: () => uploads,
    stop: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}
