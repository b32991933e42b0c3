import { fittingHeaders, jsonBytes, sharesOf } from './json-room.ts';

/** Details of an attempt over HTTP besides its outcome. Secrets are masked before it gets here. */
export interface AttemptDetail {
  /** As they were sent, names in lower case; null: nothing was sent. */
  requestHeaders: [string, string][] | null;
  /** Null: there was no response. */
  responseHeaders: [string, string][] | null;
  /** Some of the headers are left out, or cut. */
  isTruncated: boolean;
  /** Address and port of the receiver, reached or not; null: it is unknown. */
  peerAddress: string | null;
  reusedConnection: boolean;
  /** Bytes of the body, as it was sent. */
  requestBytes: number;
  /** Bytes of the body, as far as it was read. */
  responseBytes: number;
  phases: AttemptPhases;
}

/** Milliseconds; 0: the phase was not needed, null: it has not ended. */
export interface AttemptPhases {
  dnsMs: number | null;
  connectMs: number | null;
  tlsMs: number | null;
  /** From the request to the headers of the response. */
  firstByteMs: number | null;
  /** With the wait for a free connection. */
  totalMs: number;
}

type Headers = [string, string][] | null;

interface KeptHeaders {
  requestHeaders: Headers;
  responseHeaders: Headers;
  areCut: boolean;
}

/** The detail for JSON, and its headers, of which there may be fewer. */
export function packedDetail(
  { isTruncated, peerAddress, reusedConnection, requestBytes, responseBytes, phases }: AttemptDetail,
  { requestHeaders, responseHeaders, areCut }: KeptHeaders,
): unknown[] {
  const { dnsMs, connectMs, tlsMs, firstByteMs, totalMs } = phases;
  const flags = (isTruncated || areCut ? 1 : 0) + (reusedConnection ? 2 : 0);
  const times = [dnsMs, connectMs, tlsMs, firstByteMs, totalMs];
  return [flags, peerAddress, requestBytes, responseBytes, times, requestHeaders?.flat() ?? null, responseHeaders?.flat() ?? null];
}

/** As many of its headers as fit into so many bytes of JSON each. */
export function headersWithin(
  { requestHeaders, responseHeaders }: Pick<AttemptDetail, 'requestHeaders' | 'responseHeaders'>,
  { forSent, forReceived }: { forSent: number; forReceived: number },
): KeptHeaders {
  const sent = requestHeaders && fittingHeaders(requestHeaders, forSent);
  const received = responseHeaders && fittingHeaders(responseHeaders, forReceived);
  return {
    requestHeaders: sent?.headers ?? null,
    responseHeaders: received?.headers ?? null,
    areCut: sent?.isCut === true || received?.isCut === true,
  };
}

/** The detail for JSON, with as many of its headers as fit. */
export function fittingDetail(detail: AttemptDetail, bytes: number): unknown[] {
  const { requestHeaders: sent, responseHeaders: received } = detail;
  const bare = packedDetail(detail, { requestHeaders: sent && [], responseHeaders: received && [], areCut: false });
  const [forSent = 0, forReceived = 0] = sharesOf(
    bytes - jsonBytes(bare),
    [sent, received].map((headers) => (headers === null ? 0 : jsonBytes(headers))),
  );
  return packedDetail(detail, headersWithin(detail, { forSent, forReceived }));
}

/** Null: it is none. */
export function unpackedDetail(packed: unknown): AttemptDetail | null {
  if (!Array.isArray(packed)) return null;
  const [flags, peerAddress, requestBytes, responseBytes, times, requestHeaders, responseHeaders]: unknown[] = packed;
  if (typeof flags !== 'number' || typeof requestBytes !== 'number' || typeof responseBytes !== 'number' || !Array.isArray(times))
    return null;
  const [dnsMs = null, connectMs = null, tlsMs = null, firstByteMs = null, totalMs = null] = times.map((each: unknown) =>
    typeof each === 'number' ? each : null,
  );
  return {
    requestHeaders: pairs(requestHeaders),
    responseHeaders: pairs(responseHeaders),
    isTruncated: (flags & 1) !== 0,
    peerAddress: typeof peerAddress === 'string' ? peerAddress : null,
    reusedConnection: (flags & 2) !== 0,
    requestBytes,
    responseBytes,
    phases: { dnsMs, connectMs, tlsMs, firstByteMs, totalMs: totalMs ?? 0 },
  };
}

function pairs(flat: unknown): Headers {
  if (!Array.isArray(flat)) return null;
  const result: [string, string][] = [];
  for (let i = 0; i + 1 < flat.length; i += 2) result.push([String(flat[i]), String(flat[i + 1])]);
  return result;
}
