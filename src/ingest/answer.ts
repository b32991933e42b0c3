import type { ServerResponse } from 'node:http';
import { answerHeaders } from '../core/answer-headers.ts';
import { errorCodes, type PosthornError } from '../core/errors.ts';
import type { HandshakeReply } from './query-handshake.ts';

const json = 'application/json; charset=utf-8';
const ofEveryAnswer = answerHeaders.flat();

/** 200 `{success: true, eventId}`, of a duplicate with `duplicate: true`. Ids need no escaping. */
export function answerAccepted(response: ServerResponse, requestId: string, eventId: string, isDuplicate: boolean): void {
  const body = `{"success":true,"eventId":"${eventId}"${isDuplicate ? ',"duplicate":true' : ''}}`;
  // All headers at once: setting them one by one takes several times as long.
  response.writeHead(200, ['Content-Type', json, 'Content-Length', String(body.length), 'X-Request-Id', requestId, ...ofEveryAnswer]);
  response.end(body, 'latin1');
}

/** 200 to a provider that sends a probe before events. */
export function answerHandshake(response: ServerResponse, requestId: string, answer: object | null): void {
  const body = answer === null ? '' : JSON.stringify(answer);
  setBodyHeaders(response, requestId, Buffer.byteLength(body));
  response.writeHead(200);
  response.end(body);
}

/** 200 to a handshake that the source has configured. */
export function answerQuestion(response: ServerResponse, requestId: string, { contentType, body, headers }: HandshakeReply): void {
  for (const [name, value] of headers) response.setHeader(name, value);
  setBodyHeaders(response, requestId, Buffer.byteLength(body));
  if (body !== '') response.setHeader('Content-Type', contentType);
  response.writeHead(200);
  response.end(body);
}

/** The error form of the REST API: `{error, message, code}`. Keeps headers that were set before. */
export function answerError(response: ServerResponse, requestId: string, error: PosthornError): void {
  const body = Buffer.from(JSON.stringify({ error: errorCodes[error.code].error, message: error.message, code: error.code }));
  setBodyHeaders(response, requestId, body.length);
  response.setHeader('X-Error-Code', error.code);
  if (error.retryAfterSeconds !== undefined) response.setHeader('Retry-After', Math.max(1, Math.ceil(error.retryAfterSeconds)));
  response.writeHead(error.status);
  response.end(body);
}

/** `bytes`: of the JSON body; 0: there is none. */
function setBodyHeaders(response: ServerResponse, requestId: string, bytes: number): void {
  for (const [name, value] of answerHeaders) response.setHeader(name, value);
  if (bytes > 0) response.setHeader('Content-Type', json);
  response.setHeader('Content-Length', bytes);
  response.setHeader('X-Request-Id', requestId);
}
