import type { RequestListener, Server } from 'node:http';
import { createHttpServer, type HttpServerOptions } from '../../src/cmd/http-server.ts';
import { withLongTimeouts } from './long-timeouts.ts';

/**
 * Makes a server of the program for a test, also on a busy machine: the time limits of its connections are longer than a test. `options` take precedence.
 * Tests of the server itself use `createHttpServer`.
 */
export function patientServer(handler: RequestListener, { limits, ...options }: HttpServerOptions = {}): Server {
  const patient = { firstRequestMs: 75_000, ...limits, lingering: { maxMs: 60_000, ...limits?.lingering } };
  return withLongTimeouts(createHttpServer(handler, { ...options, limits: patient }));
}
