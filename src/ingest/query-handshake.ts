import { createHmac } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { PosthornError } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import { knownTokens } from '../core/providers/known-token.ts';
import type { SourceRecord } from '../core/records.ts';
import type { Keyring } from '../core/sealing.ts';
import { recordSealingContext } from '../core/sealing-contexts.ts';
import { queryParameter, queryParameters } from '../core/sent-query.ts';

/** Characters of what is sent back. */
const maxChallengeLength = 4096;
/** A name of a host, or `*`, as RFC 9110 writes hosts; nothing that ends a header. */
const originPattern = /^[A-Za-z0-9.*:/_-]{1,255}$/;
/** Text signed for X: never JSON with members, so that no event of X is such a text. */
const crcToken = /^[A-Za-z0-9._~+/=-]{0,256}$/;

/** The answer to a question by which a sender makes sure that the address takes its events; status 200. */
export interface HandshakeReply {
  contentType: 'text/plain; charset=utf-8' | 'application/json; charset=utf-8';
  body: string;
  headers: [name: string, value: string][];
}

type Asked = Pick<IncomingMessage, 'method' | 'headers'>;

/** Makes the answer. Throws FORBIDDEN for a wrong verify token, BAD_REQUEST for what is not sent back or signed. */
export type HandshakeAnswer = () => HandshakeReply;

/** Null: the request is no question. */
export type QueryHandshake = (request: Asked, query: string) => HandshakeAnswer | null;

/** The handshakes that a source answers besides those of its provider; null: none. One whose secret does not open fails at the handshake, not at events. */
export function queryHandshake(source: SourceRecord, keyring: Keyring, logger: Logger): QueryHandshake | null {
  const { handshake } = source;
  if (handshake === undefined) return null;
  const open = (sealed: string, field: 'verifyToken' | 'signingSecrets'): string => {
    try {
      return keyring.open(sealed, recordSealingContext(source.org, 'source', source.id, field));
    } catch (error) {
      logger.error({ err: error, sourceId: source.id }, 'the handshake secret of a source cannot be decrypted');
      throw error;
    }
  };
  switch (handshake.type) {
    case 'hub_challenge': {
      const { verifyToken } = handshake;
      return (request, query) => hubAnswer(request, query, verifyToken === undefined ? null : () => open(verifyToken, 'verifyToken'));
    }
    case 'validation_token':
      return (request, query) => echo(request, query, ['GET', 'POST'], 'validationToken');
    case 'challenge':
      return (request, query) => echo(request, query, ['GET'], 'challenge');
    case 'crc_token': {
      const [sealed] = source.signingSecrets;
      return sealed === undefined ? null : (request, query) => crcAnswer(request, query, () => open(sealed, 'signingSecrets'));
    }
    case 'cloudevents':
      return (request) => allowance(request, source);
    default:
      return handshake.type satisfies never;
  }
}

/**
 * Whether the source signs such a text for anybody: a signature of it proves nothing. Of a scheme that signs more than the body, the body is the
 * end of the signed text.
 */
export function isSignedForAnyone({ handshake }: Pick<SourceRecord, 'handshake'>, body: Buffer): boolean {
  return handshake?.type === 'crc_token' && body.length <= 256 && crcToken.test(body.toString('latin1'));
}

/** Meta: `hub.challenge` back when `hub.verify_token` is the right one; WebSub: the same, without a token. Only of a subscription: nobody is to end one for us. */
function hubAnswer(request: Asked, query: string, verifyToken: (() => string) | null): HandshakeAnswer | null {
  const parameters = queryParameters(query);
  if (queryParameter(parameters, 'hub.mode') !== 'subscribe') return null;
  const answer = echo(request, query, ['GET'], 'hub.challenge');
  if (answer === null || verifyToken === null) return answer;
  return () => {
    const sent = queryParameter(parameters, 'hub.verify_token') ?? '';
    if (!knownTokens([verifyToken()])(sent)) throw new PosthornError('FORBIDDEN', 'hub.verify_token is missing or wrong');
    return answer();
  };
}

/** Sends the value of a parameter back as text, which no browser shows as anything else. */
function echo({ method = '' }: Asked, query: string, methods: readonly string[], name: string): HandshakeAnswer | null {
  const value = methods.includes(method) ? queryParameter(queryParameters(query), name) : undefined;
  if (value === undefined || value === '') return null;
  return () => {
    if (value.length > maxChallengeLength)
      throw new PosthornError('BAD_REQUEST', `${name} is longer than ${maxChallengeLength} characters`);
    return { contentType: 'text/plain; charset=utf-8', body: value, headers: [] };
  };
}

/** X: the HMAC-SHA256 of `crc_token` under the consumer secret. */
function crcAnswer({ method }: Asked, query: string, secret: () => string): HandshakeAnswer | null {
  const token = method === 'GET' ? queryParameter(queryParameters(query), 'crc_token') : undefined;
  if (token === undefined || token === '') return null;
  return () => {
    if (!crcToken.test(token))
      throw new PosthornError('BAD_REQUEST', 'crc_token must be at most 256 letters, digits and characters of Base64');
    const signature = createHmac('sha256', secret()).update(token).digest('base64');
    return { contentType: 'application/json; charset=utf-8', body: JSON.stringify({ response_token: `sha256=${signature}` }), headers: [] };
  };
}

/** The protection against abuse of CloudEvents (HTTP 1.1 Web Hooks for Event Delivery, section 4). `WebHook-Request-Callback` is not called. */
function allowance({ method, headers }: Asked, { allowedMethods, rateLimitPerMinute }: SourceRecord): HandshakeAnswer | null {
  const origin = headers['webhook-request-origin'];
  if (method !== 'OPTIONS' || typeof origin !== 'string' || !originPattern.test(origin)) return null;
  return () => ({
    contentType: 'text/plain; charset=utf-8',
    body: '',
    headers: [
      ['Allow', allowedMethods.join(', ')],
      ['WebHook-Allowed-Origin', origin],
      ['WebHook-Allowed-Rate', rateLimitPerMinute === undefined ? '*' : String(rateLimitPerMinute)],
    ],
  });
}
