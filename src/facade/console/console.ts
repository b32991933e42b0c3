import { createReadStream } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream';
import Negotiator from 'negotiator';
import { PosthornError } from '../../core/errors.ts';
import type { Logger } from '../../core/logger.ts';
import { answerError } from '../http/error-response.ts';
import { nothingHere } from '../http/operation-table.ts';
import { answerRequestId } from '../http/request-id-header.ts';
import { requestTarget } from '../http/request-target.ts';
import { type BuiltConsole, type BuiltFile, type Encoding, type PageSettings, readBuiltConsole } from './built-console.ts';

export interface ConsoleOptions extends PageSettings {
  /** Output of `hack/web.ts`; it may be missing. */
  directory: string;
}

/** Handles a request whose path is `/console` or below, or `/` for a browser. Returns whether it did. */
export type ConsoleHandler = (request: IncomingMessage, response: ServerResponse) => boolean;

const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "form-action 'self'",
].join('; ');

const securityHeaders = new Map([
  ['Content-Security-Policy', contentSecurityPolicy],
  ['X-Content-Type-Options', 'nosniff'],
  ['Referrer-Policy', 'no-referrer'],
  ['Cross-Origin-Opener-Policy', 'same-origin'],
  ['Permissions-Policy', 'camera=(), geolocation=(), microphone=(), payment=(), usb=()'],
]);

const notBuilt = `The console is not built. "node hack/web.ts dist/web" builds it in a source tree; "npm run build" builds it with the program.\n`;

/**
 * The console at `/console`: its page at every path (a path is a state of the page), its files below `/console/assets/`. Browsers at `/` are
 * redirected to it. The build is read at the first request; without one, the response is 503 with the command that makes it.
 */
export function createConsole({ directory, ...settings }: ConsoleOptions, { logger }: { logger: Logger }): ConsoleHandler {
  let built: Promise<BuiltConsole | null> | undefined;
  const find = async (): Promise<BuiltConsole | null> => {
    built ??= readBuiltConsole(directory, settings);
    const found = await built.catch((error: unknown) => {
      built = undefined;
      throw error;
    });
    if (found === null) built = undefined;
    return found;
  };
  return (request, response) => {
    const { path } = requestTarget(request.url ?? '');
    const isEntrance = path === '/' && isRead(request) && prefersHtml(request.headers.accept);
    if (!isEntrance && !isConsolePath(path)) return false;
    answerRequestId(request, response);
    response.setHeaders(securityHeaders);
    if (isEntrance) response.writeHead(302, { Location: `${settings.basePath}/console/`, Vary: 'Accept' }).end();
    else void answer(request, response, { path, find }).catch((thrown: unknown) => answerError({ logger }, { response, path }, thrown));
    return true;
  };
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  { path, find }: { path: string; find: () => Promise<BuiltConsole | null> },
): Promise<void> {
  if (!isRead(request)) {
    response.setHeader('Allow', 'GET, HEAD');
    throw new PosthornError('METHOD_NOT_ALLOWED', `${request.method} is not allowed here; the path allows GET, HEAD.`);
  }
  const built = await find();
  if (built === null) return void response.writeHead(503, { 'Content-Type': 'text/plain; charset=utf-8' }).end(notBuilt);
  const name = path.slice('/console/'.length);
  const file = built.files.get(name);
  if (file === undefined && name.startsWith('assets/')) throw nothingHere();
  send(request, response, file ?? built.page);
}

function send(request: IncomingMessage, response: ServerResponse, { type, cacheControl, bodies }: BuiltFile): void {
  const encoding = encodingFor(request, bodies);
  const body = bodies[encoding] ?? bodies.identity;
  response.writeHead(200, {
    'Content-Type': type,
    'Content-Length': body.bytes,
    'Cache-Control': cacheControl,
    Vary: 'Accept-Encoding',
    ...(encoding !== 'identity' && { 'Content-Encoding': encoding }),
  });
  if (request.method === 'HEAD') response.end();
  else if (typeof body.content === 'string') pipeline(createReadStream(body.content), response, () => undefined);
  else response.end(body.content);
}

/** Brotli before gzip, whatever the client names first: it is smaller. */
function encodingFor({ headers }: IncomingMessage, bodies: BuiltFile['bodies']): Encoding {
  const accepted = new Negotiator({ headers: { 'accept-encoding': headers['accept-encoding'] } }).encodings(['br', 'gzip']);
  return (['br', 'gzip'] as const).find((each) => bodies[each] !== undefined && accepted.includes(each)) ?? 'identity';
}

function isConsolePath(path: string): boolean {
  return path.startsWith('/console') && (path.length === 8 || path[8] === '/');
}

function isRead({ method }: IncomingMessage): boolean {
  return method === 'GET' || method === 'HEAD';
}

function prefersHtml(accept: string | undefined): boolean {
  return new Negotiator({ headers: { accept } }).mediaType(['application/json', 'text/html']) === 'text/html';
}
