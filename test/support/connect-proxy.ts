import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';

export interface ConnectProxy {
  /** With user and password. */
  url: string;
  /** What tunnels were opened to, as `host:port`. */
  tunnels: string[];
  close(): Promise<void>;
}

/** A real CONNECT proxy on loopback (RFC 9110 section 9.3.6) that asks for its user and password. */
export async function startConnectProxy(): Promise<ConnectProxy> {
  const credentials = `Basic ${Buffer.from('posthorn:s3:cret').toString('base64')}`;
  const tunnels: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((_, response) => response.writeHead(405).end());
  server.on('connection', (socket) => sockets.add(socket));
  server.on('connect', ({ url = '', headers }, client: Socket) => {
    if (headers['proxy-authorization'] !== credentials) {
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
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://posthorn:s3%3Acret@127.0.0.1:${(server.address() as AddressInfo).port}`,
    tunnels,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
