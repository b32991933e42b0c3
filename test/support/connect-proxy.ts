import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';

export interface ConnectProxy {
  /** With user and the first password. */
  url: string;
  /** Those that the user may have. */
  passwords: Set<string>;
  /** What tunnels were opened to, as `host:port`. */
  tunnels: string[];
  close(): Promise<void>;
}

/** A real CONNECT proxy (RFC 9110 section 9.3.6) that requires its user and password, on loopback unless another `host` is given. */
export async function startConnectProxy({ host = '127.0.0.1' } = {}): Promise<ConnectProxy> {
  const passwords = new Set(['s3:cret']);
  const isAllowed = (authorization: string | undefined): boolean =>
    [...passwords].some((password) => authorization === `Basic ${Buffer.from(`posthorn:${password}`).toString('base64')}`);
  const tunnels: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((_, response) => response.writeHead(405).end());
  server.on('connection', (socket) => sockets.add(socket));
  server.on('connect', ({ url = '', headers }, client: Socket) => {
    if (!isAllowed(headers['proxy-authorization'])) {
      client.end('HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n');
      return;
    }
    tunnels.push(url);
    const { hostname, port } = new URL(`http://${url}`);
    const receiver = connect(Number(port || 80), hostname.replace(/^\[|\]$/g, ''), () => {
      client.write('HTTP/1.1 200 OK\r\n\r\n');
      client.pipe(receiver).pipe(client);
    });
    sockets.add(receiver);
    receiver.on('error', () => client.destroy());
    client.on('error', () => receiver.destroy());
  });
  server.listen(0, host);
  await once(server, 'listening');
  return {
    url: `http://posthorn:s3%3Acret@${host}:${(server.address() as AddressInfo).port}`,
    passwords,
    tunnels,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
