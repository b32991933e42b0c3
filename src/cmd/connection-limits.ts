import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { AddressList } from '../core/address-list.ts';
import { clientNetwork } from '../core/client-address.ts';
import { OpenShares } from '../core/open-shares.ts';

/** Bounds of the connections of one server. */
export interface ConnectionLimits {
  /** Open connections; further ones are closed at once. */
  maxConnections: number;
  /** Open connections of one client address, of IPv6 one /64. */
  maxPerAddress: number;
  /** Maximum time of a connection without data before its first request. */
  firstRequestMs: number;
  /** How long nothing may move on a connection while a request is under way: longer than any answer takes to begin. */
  idleMs: number;
}

export const defaultConnectionLimits: ConnectionLimits = {
  maxConnections: 10_000,
  maxPerAddress: 2500,
  firstRequestMs: 10_000,
  idleMs: 180_000,
};

/** Closes silent connections, and those that exceed the share of their address. Over a unix socket come processes of our own, which have none. */
export function boundConnections(
  server: Server,
  { maxConnections, maxPerAddress, firstRequestMs, idleMs }: ConnectionLimits,
  sharedAddresses: AddressList,
): { onRequest(socket: Socket): void } {
  const open = new OpenShares({ all: maxConnections, ofOwner: maxPerAddress });
  const silent = new Set<Socket>();
  server.maxConnections = maxConnections;
  server.timeout = idleMs;
  server.on('connection', (socket: Socket) => {
    const address = socket.remoteAddress;
    if (address === undefined) {
      // A client of a port that has no address has hung up already.
      if (typeof server.address() !== 'string') socket.destroy();
      return;
    }
    const client = clientNetwork(address);
    if (sharedAddresses.has(address)) open.add(client);
    else if (!open.take(client)) return void socket.destroy();
    silent.add(socket);
    socket.setTimeout(firstRequestMs);
    socket.once('close', () => {
      silent.delete(socket);
      open.giveBack(client);
    });
  });
  return {
    onRequest(socket) {
      if (silent.delete(socket)) socket.setTimeout(idleMs);
    },
  };
}
