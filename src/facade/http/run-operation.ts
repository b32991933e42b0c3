import type { IncomingMessage, ServerResponse } from 'node:http';
import { parse as parseQueryText } from 'node:querystring';
import { canonicalDigest, canonicalJson } from '../../core/canonical-json.ts';
import { PosthornError } from '../../core/errors.ts';
import { hopHeader } from '../../core/hops.ts';
import { type LoopTurn, loopTurns } from '../../core/loop-turns.ts';
import type { Access, Client } from './access.ts';
import { authorize } from './authorization.ts';
import { largeBodyBytes, readJsonObject, readLargeJsonObject } from './body.ts';
import type { Caller } from './caller.ts';
import { ifMatchIn } from './entity-tags.ts';
import type { Exchange } from './exchange.ts';
import { type Answer, answerOnce, type Idempotency } from './idempotency.ts';
import { type LargeBodies, largeBodyLimits } from './large-bodies.ts';
import { jsonContentType, prefersYaml } from './media-types.ts';
import { type OpenRequests, ownerOf } from './open-requests.ts';
import { type Operation, takesIdempotencyKey, takesIfMatch } from './operation.ts';
import { bodyCharge, chargeWork, countedAs, limitRate, workCharge } from './rate-limiting.ts';
import { hasList, jsonText, jsonTextInPieces } from './raw-json.ts';
import { bytesToRead, readBody } from './read-body.ts';
import type { RequestMemory } from './request-memory.ts';
import type { FacadeServices } from './services.ts';
import { cookieValue, setCookieHeader } from './session-cookie.ts';
import { StreamedAnswer, sendStreamed } from './streamed-answer.ts';

export interface RunOptions {
  services: FacadeServices;
  /** The public URL of the API; absent: taken from the Host header. */
  publicIngestUrl?: string | undefined;
  /** Below which clients reach the API, as `/posthorn`; empty: below nothing. */
  basePath: string;
  maxBodyBytes: number;
  largeBodies: LargeBodies;
  openRequests: OpenRequests;
  memory: RequestMemory;
}

/** The requested resource. `path`: below `/api` or the organization. */
export interface Requested {
  operation: Operation;
  caller: Caller;
  access: Access;
  client: Client;
  /** Bytes of the body that authentication has read; undefined: none. */
  bodyBytes?: Buffer | undefined;
  path: string;
  params: Readonly<Record<string, string>>;
  /** The caller, revalidated. */
  identifyAgain(): Promise<Caller>;
}

/** The body of a POST without one is read to be refused: a sender of fields expects an effect. */
function readsBody({ method, body }: Operation): boolean {
  return body !== undefined || method === 'POST';
}

const noBytes = Buffer.alloc(0);

const jsonType = /^application\/json\s*(?:;|$)/i;
const otherCharset = /;\s*charset\s*=\s*(?!"?utf-?8"?\s*(?:;|$))/i;

function requireJson({ headers }: IncomingMessage): void {
  const type = headers['content-type'] ?? '';
  if (!jsonType.test(type) || otherCharset.test(type))
    throw new PosthornError('UNSUPPORTED_MEDIA_TYPE', 'Send the body as application/json in UTF-8.');
}

/** The body of a request to the operation; none where it takes none. UNSUPPORTED_MEDIA_TYPE for what is no JSON; rejects as `readBody` does. */
export async function bodyOf({ request, response }: Exchange, operation: Operation, maxBodyBytes: number): Promise<Buffer> {
  if (!readsBody(operation)) return noBytes;
  const { 'content-length': length = '0', 'content-type': type } = request.headers;
  // A body in chunks may be empty.
  const isKnown = Number(length) > 0 || (request.headers['transfer-encoding'] !== undefined && type !== undefined);
  if (isKnown) requireJson(request);
  const bytes = await readBody(request, response, operation.maxBodyBytes ?? maxBodyBytes);
  if (!isKnown && bytes.length > 0) requireJson(request);
  return bytes;
}

/** Carries out the operation and sends its answer. What it throws is not sent. */
export async function runOperation(exchange: Exchange, requested: Requested, options: RunOptions): Promise<void> {
  const { response } = exchange;
  const { operation, caller } = requested;
  const { rateLimiter } = options.services;
  exchange.operationId = operation.operationId;
  authorize(caller, operation);
  options.openRequests.enterScan(caller, operation, exchange);
  const signal = hangUpSignal(response);
  const bodyBytes = requested.bodyBytes ?? (await readWithinMemory(exchange, requested, options, signal));
  // A request that sends events is counted as such, and its bytes as other requests are.
  const limited = countedAs(exchange.path) === 'request' ? response : null;
  const count = bodyCharge(bodyBytes.length);
  if (count > 0) await limitRate(rateLimiter, caller, { response: limited, counted: 'request', count });
  const owner = ownerOf(caller);
  const turn = loopTurns.of(owner.organization, owner.credential);
  const perform = (): Promise<void> => answerWith(exchange, requested, options, { bodyBytes, turn, signal });
  try {
    if (bodyBytes.length <= largeBodyLimits.bytes) await perform();
    else await options.largeBodies.run(owner, perform);
  } finally {
    const charged = workCharge(turn.waits);
    if (charged > 0) void chargeWork(rateLimiter, caller, charged).catch(() => undefined);
  }
}

async function readWithinMemory(
  exchange: Exchange,
  { operation, caller }: Requested,
  { memory, maxBodyBytes }: RunOptions,
  signal: AbortSignal,
): Promise<Buffer> {
  if (readsBody(operation))
    await memory.hold(ownerOf(caller), bytesToRead(exchange.request, operation.maxBodyBytes ?? maxBodyBytes), exchange, signal);
  return await bodyOf(exchange, operation, maxBodyBytes);
}

async function answerWith(
  exchange: Exchange,
  { operation, caller, access, client, path, params, identifyAgain }: Requested,
  { services, publicIngestUrl, basePath, memory }: RunOptions,
  { bodyBytes, turn, signal }: { bodyBytes: Buffer; turn: LoopTurn; signal: AbortSignal },
): Promise<void> {
  const { request, response } = exchange;
  const isLarge = bodyBytes.length > largeBodyBytes;
  const body = isLarge
    ? await turn.run(readLargeJsonObject(bodyBytes, operation.freeField), signal)
    : readJsonObject(bodyBytes, operation.freeField);
  const query: Record<string, unknown> = exchange.query === '' ? {} : { ...parseQueryText(exchange.query) };
  const streamed: StreamedAnswer[] = [];
  const perform = async (idempotency: Idempotency | null): Promise<Answer> => {
    const warnings = new Set<string>();
    let status: number = operation.answer.status;
    let version = '';
    const whileAwaited = idempotency === null ? signal : new AbortController().signal;
    const wantsYaml = operation.offersYaml !== undefined && prefersYaml(request.headers.accept);
    const answer = await operation.run({
      services,
      caller,
      access,
      client,
      params,
      query,
      body,
      bodyBytes,
      turn,
      signal: whileAwaited,
      lastEventId: String(request.headers['last-event-id'] ?? '') || null,
      sentHop: request.headers[hopHeader],
      recheck: async () => authorize(await identifyAgain(), operation),
      wantsYaml,
      ifMatch: takesIfMatch(operation) ? ifMatchIn(request.headers['if-match']) : null,
      setEntityTag: (tag) => {
        version = tag;
      },
      idempotency,
      publicIngestUrl,
      hold: (bytes) => memory.hold(ownerOf(caller), bytes, exchange, whileAwaited),
      charge: (count) => limitRate(services.rateLimiter, caller, { response, counted: countedAs(exchange.path), count }),
      warn: (text) => void warnings.add(`199 - "${text}"`),
      sentSessionCookie: cookieValue(request.headers.cookie),
      setSessionCookie: (value, maxAgeSeconds = 0) =>
        void response.setHeader('Set-Cookie', setCookieHeader(request, basePath, value ?? '', maxAgeSeconds)),
      answerOtherwise: () => {
        status = operation.answer.otherwise?.status ?? status;
      },
    });
    if (answer instanceof StreamedAnswer) streamed.push(answer);
    return {
      status,
      headers: {
        ...(warnings.size > 0 && { Warning: [...warnings] }),
        ...(operation.isVersioned === true && version !== '' && { ETag: version }),
        ...(wantsYaml && { 'Content-Type': 'application/yaml; charset=utf-8' }),
        ...(operation.offersYaml !== undefined && { Vary: 'Accept' }),
      },
      body: operation.answer.status === 204 ? null : wantsYaml ? String(answer) : await answerText(answer, turn, whileAwaited),
    };
  };
  const key = takesIdempotencyKey(operation) ? request.headers['idempotency-key'] : undefined;
  const keyed = async (given: string) => ({
    services,
    caller,
    key: given,
    request: isLarge ? await turn.run(canonicalDigest([path, query, body]), signal) : canonicalJson([path, query, body]),
    answersAgain: operation.answersAgain === true,
  });
  const answer = key === undefined ? await perform(null) : await answerOnce(await keyed(String(key)), perform);
  const [pieces] = streamed;
  if (pieces === undefined) send(response, answer);
  else await sendStreamed(response, pieces, answer.status);
}

async function answerText(answer: unknown, turn: LoopTurn, signal: AbortSignal): Promise<string> {
  return hasList(answer) ? await turn.run(jsonTextInPieces(answer), signal) : jsonText(answer);
}

/** Aborted when the connection closes before the answer has been sent. */
export function hangUpSignal(response: ServerResponse): AbortSignal {
  const ending = new AbortController();
  const abort = (): void => {
    if (!response.writableFinished) ending.abort();
  };
  if (response.closed) abort();
  else response.once('close', abort);
  return ending.signal;
}

function send(response: ServerResponse, { status, headers, body }: Answer): void {
  response.statusCode = status;
  if (body !== null) response.setHeader('Content-Type', jsonContentType);
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  if (body === null) return void response.end();
  response.setHeader('Content-Length', Buffer.byteLength(body));
  response.end(body);
}
