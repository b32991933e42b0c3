import type { AttemptDetail, AttemptPhases } from '../../data/shard/attempt-detail.ts';
import type { ConnectionTrace, ExchangeTrace } from '../targets/http/exchange-trace.ts';
import type { TracedExchange } from '../targets/http/http-exchange.ts';

const maxHeaderBytes = 4096;

/** The detail of an attempt besides its outcome, with masked secrets; null: the request was none over HTTP. */
export function attemptDetail(traced: TracedExchange | undefined): AttemptDetail | null {
  if (traced === undefined) return null;
  const { request, trace } = traced;
  const { secrets, body } = request;
  const limits = { sent: request, maxBytes: maxHeaderBytes };
  const sent = trace.head === null ? null : secrets.maskedHeaders(headersOfHead(trace.head, body), limits);
  const received = trace.responseHeaders === null ? null : secrets.maskedHeaders(headersOf(trace.responseHeaders), limits);
  return {
    requestHeaders: sent?.headers ?? null,
    responseHeaders: received?.headers ?? null,
    isTruncated: sent?.isCut === true || received?.isCut === true,
    peerAddress: trace.connection?.peerAddress ?? null,
    reusedConnection: trace.isReused,
    requestBytes: trace.head === null ? 0 : (body?.length ?? 0),
    responseBytes: trace.responseBytes,
    phases: phasesOf(trace),
  };
}

/** The lines after the request line, and the length that undici writes after its event. */
function headersOfHead(head: string, body: Buffer | null): [string, string][] {
  const headers = head
    .split('\r\n')
    .slice(1)
    .flatMap((line): [string, string][] => {
      const end = line.indexOf(': ');
      return end < 1 ? [] : [[line.slice(0, end), line.slice(end + 2)]];
    });
  if (body !== null && body.length > 0) headers.push(['content-length', String(body.length)]);
  return headers;
}

function headersOf(headers: NonNullable<ExchangeTrace['responseHeaders']>): [string, string][] {
  return Object.entries(headers).flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : Array.isArray(value) ? value.map((each) => [name, each]) : [[name, value]],
  );
}

function phasesOf({ connection, isReused, beganAtMs, sentAtMs, firstByteAtMs, endedAtMs }: ExchangeTrace): AttemptPhases {
  const ofConnection = isReused ? { dnsMs: 0, connectMs: 0, tlsMs: 0 } : connectionPhases(connection);
  return {
    ...ofConnection,
    firstByteMs: between(sentAtMs, firstByteAtMs),
    totalMs: between(beganAtMs, endedAtMs) ?? 0,
  };
}

function connectionPhases(connection: ConnectionTrace | null): Pick<AttemptPhases, 'dnsMs' | 'connectMs' | 'tlsMs'> {
  if (connection === null) return { dnsMs: null, connectMs: null, tlsMs: null };
  const { beganAtMs, hasTls, lookupBeganAtMs, lookedUpAtMs, connectedAtMs, securedAtMs } = connection;
  const isLookedUp = lookupBeganAtMs === null || lookedUpAtMs !== null;
  return {
    dnsMs: lookupBeganAtMs === null ? 0 : between(lookupBeganAtMs, lookedUpAtMs),
    connectMs: isLookedUp ? between(lookedUpAtMs ?? beganAtMs, connectedAtMs) : null,
    tlsMs: hasTls ? between(connectedAtMs, securedAtMs) : connectedAtMs === null ? null : 0,
  };
}

function between(from: number | null, until: number | null): number | null {
  return from === null || until === null ? null : Math.max(0, Math.round(until - from));
}
