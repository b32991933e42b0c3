import type { IncomingMessage, ServerResponse } from 'node:http';
import { accountOf } from '../../core/account.ts';
import type { AddressList } from '../../core/address-list.ts';
import { clientAddress, clientNetwork } from '../../core/client-address.ts';
import { PosthornError } from '../../core/errors.ts';
import { OpenShares } from '../../core/open-shares.ts';
import { type LinkedPayload, linkedPayload, payloadLinkPath } from '../../core/payload-link.ts';
import type { OrganizationRecord } from '../../core/records.ts';
import type { LinkedPayloads } from '../../data/history/linked-payloads.ts';
import { onePiece } from '../../data/shard/payload-chunks.ts';
import type { ApiHandler } from './api-handler.ts';
import { answerError } from './error-response.ts';
import type { Exchange } from './exchange.ts';
import type { FacadeMetrics } from './metrics.ts';
import { takeShare } from './open-requests.ts';
import { limitRate } from './rate-limiting.ts';
import { answerRequestId } from './request-id-header.ts';
import { logWhenAnswered } from './request-log.ts';
import { payloadPieceMemory, type RequestMemory } from './request-memory.ts';
import { requestTarget } from './request-target.ts';
import { hangUpSignal } from './run-operation.ts';
import type { FacadeServices } from './services.ts';
import { completePieces, StreamedAnswer, sendStreamed } from './streamed-answer.ts';

/** Payloads of one organization that a process of the API sends at a time. One client has 200 of them while it is alone; see `OpenShares`. */
const maxOpenFetches = 266;
/** A client that reads more slowly than its payload needs is given up. */
const fetchDeadlineMs = 300_000;

/** The payload of one organization is served from the origin of the API and its console, where no browser may show it. */
const headers = {
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'; sandbox",
  'Referrer-Policy': 'no-referrer',
};

export interface PayloadLinkOptions {
  services: Pick<FacadeServices, 'registry' | 'keyring' | 'rateLimiter' | 'clock' | 'logger'>;
  payloads: LinkedPayloads;
  metrics: FacadeMetrics;
  memory: RequestMemory;
  trustedProxies: AddressList;
}

/**
 * Serves the links of thin deliveries: who has a link needs no other credential. Answers NOT_FOUND to what this installation has not made, and for an
 * organization that is gone; EXPIRED where the link is too old, or its payload is no longer stored.
 */
export function payloadLinkHandler({ services, payloads, metrics, memory, trustedProxies }: PayloadLinkOptions): ApiHandler {
  const open = new OpenShares({ ofOwner: maxOpenFetches });
  const { registry, keyring, rateLimiter, clock } = services;

  /** Stands for the credential that it does not show; no credential has such an id. */
  const clientOf = ({ headers, socket }: IncomingMessage): string =>
    `client ${clientNetwork(clientAddress(socket.remoteAddress ?? '', headers['x-forwarded-for'], trustedProxies))}`;
  const organizationOf = async (linked: LinkedPayload): Promise<OrganizationRecord> => {
    const organization = await registry.get('organization', accountOf(linked.org));
    if (organization === null || organization.retained !== undefined) throw nothingBehind();
    return organization;
  };
  const answer = async ({ request, response, query, ended }: Exchange): Promise<void> => {
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.setHeader('Allow', 'GET, HEAD');
      throw new PosthornError('METHOD_NOT_ALLOWED', `${request.method} is not allowed here; the path allows GET, HEAD.`);
    }
    refuseAsPart(request);
    const linked = linkedPayload(new URLSearchParams(query).get('token') ?? '', keyring);
    if (linked === null) throw nothingBehind();
    const organization = await organizationOf(linked);
    if (clock.now() >= linked.expiresAtMs) throw new PosthornError('EXPIRED', 'The link has expired.');
    const owner = { organization: organization.id, credential: clientOf(request) };
    takeShare(open, owner, { response, ended }, 'fetches of payloads');
    await limitRate(rateLimiter, { organization }, { response, counted: 'fetch' });
    await memory.hold(owner, payloadPieceMemory, { response, ended }, hangUpSignal(response));
    await sendStreamed(response, await payloadOf(linked, payloads), 200);
  };
  return (request: IncomingMessage, response: ServerResponse) => {
    const { path, query } = requestTarget(request.url ?? '');
    if (path !== payloadLinkPath) return false;
    const requestId = answerRequestId(request, response);
    const operationId = 'fetchPayload';
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    const exchange: Exchange = { request, response, requestId, path, query, ended, caller: null, sessionId: null, operationId };
    logWhenAnswered(exchange, { ...services, metrics });
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    void answer(exchange)
      .catch((thrown: unknown) => answerError(services, { response, path }, thrown))
      .finally(end);
    return true;
  };
}

/** FORBIDDEN to a browser that would make the payload a part of a page, such as a script of the console, whose policy allows those of its own origin. */
function refuseAsPart({ headers: { 'sec-fetch-dest': wanted } }: IncomingMessage): void {
  if (wanted === undefined || wanted === 'empty' || wanted === 'document') return;
  throw new PosthornError('FORBIDDEN', 'A payload is no part of a page: fetch it, or open its link.');
}

async function payloadOf({ org, message, payload }: LinkedPayload, payloads: LinkedPayloads): Promise<StreamedAnswer> {
  const broken = AbortSignal.timeout(fetchDeadlineMs);
  if (message === null) {
    const body = Buffer.from(payload ?? '');
    const sent = { contentType: 'application/json', contentEncoding: null, bytes: body.length };
    return new StreamedAnswer(sentHeaders('test', sent), completePieces(onePiece(body), noLongerStored), broken);
  }
  const full = await payloads.read(org, message.id, message.outputOf);
  if (full === null) throw noLongerStored();
  const sent = {
    ...full,
    contentType: message.contentType ?? full.contentType,
    contentEncoding: message.contentEncoding ?? full.contentEncoding,
  };
  return new StreamedAnswer(sentHeaders(message.id, sent), completePieces(full.pieces, noLongerStored), broken);
}

function sentHeaders(
  name: string,
  { contentType, contentEncoding, bytes }: { contentType: string; contentEncoding: string | null; bytes: number },
): Record<string, string> {
  return {
    'Content-Type': contentType === '' ? 'application/octet-stream' : contentType,
    ...(contentEncoding !== null && { 'Content-Encoding': contentEncoding }),
    'Content-Length': String(bytes),
    'Content-Disposition': `attachment; filename="${name}"`,
  };
}

function nothingBehind(): PosthornError {
  return new PosthornError('NOT_FOUND', 'There is nothing behind this link.');
}

function noLongerStored(): PosthornError {
  return new PosthornError('EXPIRED', 'The payload is no longer stored.');
}
