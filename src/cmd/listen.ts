import type { Server } from 'node:http';
import { PosthornError } from '../core/errors.ts';

/** Opens the port and answers which it is (for port 0). A port in use throws, saying so. */
export function listen(server: Server, options: { port: number; host: string | undefined; setting: string }): Promise<number> {
  return new Promise((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException): void => {
      const where = options.host === undefined ? `port ${options.port}` : `port ${options.port} of ${options.host}`;
      const why =
        error.code === 'EADDRINUSE'
          ? `${where} is in use: stop what listens there or set ${options.setting}`
          : `cannot listen on ${where}: ${error.message}`;
      reject(new PosthornError('UNAVAILABLE', why, { cause: error }));
    };
    server.once('error', failed);
    server.listen({ port: options.port, ...(options.host === undefined ? {} : { host: options.host }) }, () => {
      server.off('error', failed);
      const address = server.address();
      resolve(typeof address === 'object' && address !== null ? address.port : options.port);
    });
  });
}

/** Takes no further connections and waits for the requests under way, at most `deadlineMs`. */
export function closeServer(server: Server, deadlineMs: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => server.closeAllConnections(), deadlineMs);
    server.close(() => {
      clearTimeout(timer);
      resolve();
    });
    server.closeIdleConnections();
  });
}
