import type { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { clientNetwork } from '../core/client-address.ts';
import { OpenShares } from '../core/open-shares.ts';

/** Bounds of what is read after answers that end their connections. */
export interface LingeringLimits {
  /** Time that a sender has to end its body. */
  maxMs: number;
  /** Bytes of one sender. */
  maxBytes: number;
  /** Connections at a time; further ones are cut at once. */
  maxConnections: number;
  /** Those of one client address, of IPv6 one /64. */
  maxPerAddress: number;
}

export const defaultLingeringLimits: LingeringLimits = {
  maxMs: 5000,
  maxBytes: 32 * 1024 * 1024,
  maxConnections: 1000,
  maxPerAddress: 250,
};

const checkMs = 50;

/**
 * Closes connections in a way that lets a client which writes its whole body before it reads receive the response (RFC 9112, section 9.6). Node destroys
 * the socket as soon as the response to `Connection: close` or HTTP/1.0 is written. The kernel answers the rest of a refused body with a reset, so the
 * client fails to write and never reads the response. This function half-closes the connection instead, and discards the rest of the body within the
 * limits. The server calls the returned function with each request.
 */
export function lingeringClose({ maxMs, maxBytes, maxConnections, maxPerAddress }: LingeringLimits): (request: IncomingMessage) => void {
  const shares = new OpenShares({ all: maxConnections, ofOwner: maxPerAddress });
  return (request) => {
    const { socket } = request;
    // Node calls it when the last answer of the connection is written.
    socket.destroySoon = () => {
      socket.destroySoon = Socket.prototype.destroySoon;
      const client = clientNetwork(socket.remoteAddress ?? '');
      if (request.complete || socket.destroyed || !shares.take(client)) return socket.destroySoon();
      const startedMs = performance.now();
      const readBefore = socket.bytesRead;
      const check = setInterval(() => {
        if (performance.now() - startedMs > maxMs || socket.bytesRead - readBefore > maxBytes) socket.destroy();
      }, checkMs);
      socket.once('close', () => {
        clearInterval(check);
        shares.giveBack(client);
      });
      socket.end();
      request.once('end', () => socket.destroySoon()).resume();
    };
  };
}
