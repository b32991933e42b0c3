import { request as tlsRequest } from 'node:https';
import { isIPv6, type Socket } from 'node:net';
import { request as plainRequest } from '../../../core/node-http.ts';

/**
 * A connection to an address through a proxy (RFC 9110 section 9.3.6, CONNECT). Rejects when the proxy cannot be reached, refuses, or
 * takes longer than `timeoutMs`.
 */
export function openTunnel(
  proxy: URL,
  { address, port, timeoutMs }: { address: string; port: number; timeoutMs: number },
): Promise<Socket> {
  const authority = `${isIPv6(address) ? `[${address}]` : address}:${port}`;
  const credentials = `${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`;
  return new Promise((resolve, reject) => {
    const isTls = proxy.protocol === 'https:';
    const request = (isTls ? tlsRequest : plainRequest)({
      method: 'CONNECT',
      host: proxy.hostname.replace(/^\[|\]$/g, ''),
      port: proxy.port || (isTls ? 443 : 80),
      path: authority,
      agent: false,
      timeout: timeoutMs,
      headers: {
        host: authority,
        ...(proxy.username !== '' && { 'proxy-authorization': `Basic ${Buffer.from(credentials).toString('base64')}` }),
      },
    });
    request.once('timeout', () => request.destroy(new Error('the egress proxy does not answer')));
    request.once('error', reject);
    request.once('response', (response) => {
      response.resume();
      reject(new Error(`the egress proxy answered ${response.statusCode}`));
    });
    request.once('connect', (response, socket) => {
      if (response.statusCode === 200) {
        socket.setTimeout(0);
        resolve(socket);
        return;
      }
      socket.destroy();
      reject(new Error(`the egress proxy answered ${response.statusCode}`));
    });
    request.end();
  });
}
