import type { Server } from 'node:http';

/**
 * Gives a server of a test longer deadlines than a test has, and returns it: on a busy machine a large body takes its time, and a client that was stopped for
 * a while finds its connection as it was.
 */
export function withLongTimeouts<S extends Pick<Server, 'requestTimeout' | 'keepAliveTimeout'>>(server: S): S {
  server.requestTimeout = 300_000;
  server.keepAliveTimeout = 75_000;
  return server;
}
