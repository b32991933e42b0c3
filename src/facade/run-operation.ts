import type { IncomingMessage, ServerResponse } from 'node:http';
import { parse as parseQueryText } from 'node:querystring';
import { canonicalJson } from '../core/canonical-json.ts';
import { PosthornError } from '../core/errors.ts';
import { authorize } from './authorization.ts';
import { readJsonObject } from './body.ts';
import type { Caller } from './caller.ts';
import type { Exchange } from './exchange.ts';
import { type Answer, answerOnce, type Idempotency } from './idempotency.ts';
import { jsonContentType } from './json-content-type.ts';
import { type Operation, takesIdempotencyKey } from './operation.ts';
import { prefersYaml } from './preferred-type.ts';
import { countedAs, limitRate } from './rate-limiting.ts';
import { jsonText } from './raw-json.ts';
import { readBody } from './read-body.ts';
import type { FacadeServices } from './services.ts';
import { StreamedAnswer, sendStreamed } from './streamed-answer.ts';

export interface RunOptions {
  services: FacadeServices;
  /** Where clients reach the API; absent: what their Host header says. */
  publicUrl?: string | undefined;
  maxBodyBytes: number;
}

/** What a request asks for. `path`: below `/api` or the organization. */
export interface Requested {
  operation: Operation;
  caller: Caller;
  path: string;
  params: Readonly<Record<string, string>>;
}

/** That of a POST that takes none is read to be refused: who sends fields wants something of them. */
function readsBody({ method, body }: Operation): boolean {
  return body !== undefined || method === 'POST';
}

const noBytes = Buffer.alloc(0);

const jsonType = /^application\/json\s*(?:;|$)/i;
const otherCharset = /;\s*charset\s*=\s*(?!"?utf-?8"?\s*(?:;|$))/i;

function requireJson(request: IncomingMessage): void {
  const hasBody = request.headers['transfer-encoding'] !== undefined || Number(request.headers['content-length'] ?? 0) > 0;
  const type = request.headers['content-type'] ?? '';
  if (hasBody && (!jsonType.test(type) || otherCharset.test(type))) {
    throw new PosthornError('UNSUPPORTED_MEDIA_TYPE', 'Send the body as application/json in UTF-8.');
  }
}

/** Carries out the operation and sends its answer. What it throws is not sent. */
export async function runOperation(
  exchange: Exchange,
  { operation, caller, path, params }: Requested,
  { services, publicUrl, maxBodyBytes }: RunOptions,
): Promise<void> {
  const { request, response } = exchange;
  exchange.operationId = operation.operationId;
  authorize(caller, operation);
  const takesBody = readsBody(operation);
  if (takesBody) requireJson(request);
  const bodyBytes = takesBody ? await readBody(request, response, operation.maxBodyBytes ?? maxBodyBytes) : noBytes;
  const body = readJsonObject(bodyBytes, operation.freeField);
  const query: Record<string, unknown> = exchange.query === '' ? {} : { ...parseQueryText(exchange.query) };
  const streamed: StreamedAnswer[] = [];
  const perform = async (idempotency: Idempotency | null): Promise<Answer> => {
    const warnings = new Set<string>();
    let status: number = operation.answer.status;
    const wantsYaml = operation.offersYaml !== undefined && prefersYaml(request.headers.accept);
    const answer = await operation.run({
      services,
      caller,
      params,
      query,
      body,
      bodyBytes,
      wantsYaml,
      idempotency,
      baseUrl: publicUrl ?? `http://${request.headers.host ?? 'localhost'}`,
      charge: (count) => limitRate(services.rateLimiter, caller, { response, counted: countedAs(exchange.path), count }),
      warn: (text) => void warnings.add(`199 - "${text}"`),
      answerOtherwise: () => {
        status = operation.answer.otherwise?.status ?? status;
      },
    });
    if (answer instanceof StreamedAnswer) streamed.push(answer);
    return {
      status,
      headers: {
        ...(warnings.size > 0 && { Warning: [...warnings] }),
        ...(wantsYaml && { 'Content-Type': 'application/yaml; charset=utf-8' }),
        ...(operation.offersYaml !== undefined && { Vary: 'Accept' }),
      },
      body: operation.answer.status === 204 ? null : wantsYaml ? String(answer) : jsonText(answer),
    };
  };
  const key = takesIdempotencyKey(operation) ? request.headers['idempotency-key'] : undefined;
  const keyed = (given: string) => ({
    services,
    caller,
    key: given,
    request: canonicalJson([path, query, body]),
    answersAgain: operation.answersAgain === true,
  });
  const answer = key === undefined ? await perform(null) : await answerOnce(keyed(String(key)), perform);
  const [pieces] = streamed;
  if (pieces === undefined) send(response, answer);
  else await sendStreamed(response, pieces, answer.status);
}

function send(response: ServerResponse, { status, headers, body }: Answer): void {
  response.statusCode = status;
  if (body !== null) response.setHeader('Content-Type', jsonContentType);
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  if (body === null) return void response.end();
  response.setHeader('Content-Length', Buffer.byteLength(body));
  response.end(body);
}
