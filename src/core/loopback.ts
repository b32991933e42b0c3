import type { IncomingMessage } from 'node:http';
import { AddressList } from './address-list.ts';

/** The header by which standalone's process on the port marks requests that are `isFromLoopback` for the api process; no client can send it. */
export const fromLoopbackHeader = 'x-posthorn-from-loopback';

const loopback = new AddressList(['127.0.0.0/8', '::1/128']);
const loopbackHost = /^(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?$/i;
/** Headers that a proxy or a tunnel adds to a request. */
const ofProxies =
  /^(?:forwarded|x-forwarded(?:-.+)?|x-original-.+|x-real-ip|x-client-ip|x-cluster-client-ip|true-client-ip|via|cdn-loop|cf-.+|fly-.+|x-envoy-.+|x-amzn-.+|tailscale-.+|ngrok-.+)$/;
/** Headers of relays that browsers do not send: a tenant may have this program, or another one, send to this server. */
const ofRelays = /^(?:webhook-.+|x-posthorn-(?!csrf$).+)$/;

/** Whether a `Host` header names this machine, with any port. */
export function isLoopbackHost(host: string | undefined): boolean {
  return host !== undefined && loopbackHost.test(host);
}

/**
 * Whether a browser on this machine sends the request by itself, to a page or from a page of this server: the server listens on a loopback address and
 * nowhere else, the connection comes from one, `Host` as it was sent is a loopback name (no name of a stranger that leads here), HTTP is 1.1 as browsers
 * send it, no header of a proxy or a relay is present, `Origin` and `Referer`, where there are any, are of that host, and `Sec-Fetch-Site` excludes
 * other sites. `boundAddress`: where the server listens; null: on no port.
 */
export function isFromLoopback(
  { headers, headersDistinct, httpVersion, socket }: Pick<IncomingMessage, 'headers' | 'headersDistinct' | 'httpVersion' | 'socket'>,
  boundAddress: string | null,
): boolean {
  const { host, origin, referer, 'sec-fetch-site': site } = headers;
  const sentHosts = headersDistinct['host'] ?? [];
  return (
    isLoopback(boundAddress) &&
    isLoopback(socket.remoteAddress) &&
    httpVersion === '1.1' &&
    sentHosts.length === 1 &&
    // A target in absolute form replaces the header (toOriginForm).
    sentHosts[0] === host &&
    isLoopbackHost(host) &&
    isOwnOrigin(origin, host) &&
    isOwnOrigin(referer, host) &&
    (site === 'same-origin' || site === 'none') &&
    !Object.keys(headers).some((name) => ofProxies.test(name) || ofRelays.test(name))
  );
}

/** Whether an `Origin` or `Referer` is missing, or is of the host by plain HTTP. */
export function isOwnOrigin(url: string | undefined, host: string | undefined): boolean {
  return url === undefined || (host !== undefined && (url === `http://${host}` || url.startsWith(`http://${host}/`)));
}

function isLoopback(address: string | null | undefined): boolean {
  return address !== null && address !== undefined && loopback.has(address);
}
