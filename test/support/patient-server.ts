import type { RequestListener, Server } from 'node:http';
import { createHttpServer, type HttpServerOptions } from '../../src/cmd/http-server.ts';
import { withLongTimeouts } from './long-timeouts.ts';

/** Makes a server of the program whose time limits for connections are longer than a test, for a busy machine; `options` take precedence. */
export function patientServer(handler: RequestListener, { limits, ...options }: HttpServerOptions = {}): Server {
  const patient = { firstRequestMs: 75_000, ...limits, lingering: { maxMs: 60_000, ...limits?.lingering } };
  return withLongTimeouts(createHttpServer(handler, { ...options, limits: patient }));
}
