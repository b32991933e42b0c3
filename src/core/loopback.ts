import type { IncomingMessage } from 'node:http';
import { AddressList } from './address-list.ts';

/** By which standalone's process that has the port tells the api process of a request that `isFromLoopback`; no client can send it. */
export const fromLoopbackHeader = 'x-posthorn-from-loopback';

const loopback = new AddressList(['127.0.0.0/8', '::1/128']);
const loopbackHost = /^(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?$/i;
/** What a proxy or a tunnel says of the request that it passes on. */
const ofProxies = /^(?:forwarded|x-forwarded-.+|x-real-ip|via)$/;

/** Whether a `Host` header names this machine, with any port. */
export function isLoopbackHost(host: string | undefined): boolean {
  return host !== undefined && loopbackHost.test(host);
}

/**
 * Whether a browser on this machine sends the request by itself, to a page or from a page of this server: the server listens on a loopback address and
 * nowhere else, the connection comes from one, `Host` is a loopback name (no name of a stranger that leads here), no header tells of a proxy, and
 * `Sec-Fetch-Site` says that no other site asks. `boundAddress`: where the server listens; null: on no port.
 */
export function isFromLoopback(
  { headers, headersDistinct, socket }: Pick<IncomingMessage, 'headers' | 'headersDistinct' | 'socket'>,
  boundAddress: string | null,
): boolean {
  const { host, 'sec-fetch-site': site } = headers;
  return (
    isLoopback(boundAddress) &&
    isLoopback(socket.remoteAddress) &&
    headersDistinct['host']?.length === 1 &&
    isLoopbackHost(host) &&
    (site === 'same-origin' || site === 'none') &&
    !Object.keys(headers).some((name) => ofProxies.test(name))
  );
}

function isLoopback(address: string | null | undefined): boolean {
  return address !== null && address !== undefined && loopback.has(address);
}
