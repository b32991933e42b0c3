import { mkdir, unlink } from 'node:fs/promises';
import type { Server } from 'node:http';
import { dirname } from 'node:path';
import { PosthornError } from '../core/errors.ts';

/** Opens the port and returns its number (for port 0). Throws if it is in use. */
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

/** The address on which the server listens; null: it does not, or on a unix socket. */
export function boundAddress(server: Server): string | null {
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.address : null;
}

/** Listens on a unix socket, in a directory that only this user may enter; replaces a stale one of an ended process. */
export async function listenOnSocket(server: Server, path: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await unlink(path).catch(() => undefined);
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) => reject(new PosthornError('UNAVAILABLE', `cannot listen on ${path}: ${cause.message}`, { cause })));
    server.listen(path, resolve);
  });
}

/** Resolves when the signal aborts. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** Part of the time for ending that is left for the rest after the requests. */
const drainMarginMs = 1000;

/** Closes a server that senders use, within the time in which the process has to end. */
export function drainServer(server: Server, drainMs: number): Promise<void> {
  return closeServer(server, Math.max(1000, drainMs - drainMarginMs));
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
