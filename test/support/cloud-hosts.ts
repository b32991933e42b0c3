import { lookup as systemLookup } from 'node:dns';
import type { IncomingHttpHeaders } from 'node:http';
import { createServer } from 'node:https';
import { buffer } from 'node:stream/consumers';
import { type CertificateAuthority, createCertificateAuthority } from './certificate-authority.ts';
import { withLongTimeouts } from './long-timeouts.ts';

/** The services of the clouds listen on port 443, which others than root may not. */
export const mayListenOn443 = process.getuid?.() === 0;

export interface CloudRequest {
  host: string;
  method: string;
  /** With the query. */
  path: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

export interface CloudAnswer {
  status?: number;
  headers?: Record<string, string>;
  body?: string | object;
}

/** Servers of clouds under their real names, on an address of this machine alone. */
export interface CloudHosts {
  readonly address: string;
  /** Authority of the certificate of all names. */
  readonly authority: CertificateAuthority;
  /** In the order in which they came; the caller may empty it. */
  readonly requests: CloudRequest[];
  /** The machine's resolver as if the clouds were here; names that are none of theirs do not exist. */
  readonly lookup: typeof systemLookup;
  stop(): Promise<void>;
}

/** What the stores of the clouds answer to an upload. */
export function storeAnswer({ host, method, body }: CloudRequest): CloudAnswer {
  if (host === 'storage.googleapis.com') {
    if (method === 'POST') return { headers: { location: 'https://storage.googleapis.com/upload/session' } };
    return { body: { kind: 'storage#object', bucket: 'events', size: String(body.length) } };
  }
  if (host.endsWith('.blob.core.windows.net'))
    return { status: 201, headers: { etag: '"a"', 'last-modified': new Date(0).toUTCString(), 'x-ms-version': '2025-01-05' } };
  return { headers: { etag: '"a"' } };
}

export async function startCloudHosts(names: readonly string[], answer: (request: CloudRequest) => CloudAnswer): Promise<CloudHosts> {
  const address = `127.${43 + Math.floor(Math.random() * 200)}.${Math.floor(Math.random() * 250)}.${1 + Math.floor(Math.random() * 250)}`;
  const authority = createCertificateAuthority();
  const requests: CloudRequest[] = [];
  const server = createServer(authority.issue(names), async (incoming, response) => {
    const { method = '', url: path = '', headers } = incoming;
    const request = { host: headers.host ?? '', method, path, headers, body: await buffer(incoming) };
    requests.push(request);
    const { status = 200, headers: own = {}, body = '' } = answer(request);
    response.writeHead(status, typeof body === 'string' ? own : { 'content-type': 'application/json', ...own });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  });
  withLongTimeouts(server);
  await new Promise<void>((resolve) => server.listen(443, address, resolve));
  const lookup = (name: string, _options: object, callback: (error: Error | null, found: { address: string; family: number }[]) => void) =>
    names.includes(name) ? callback(null, [{ address, family: 4 }]) : callback(new Error(`${name} is no host of the clouds`), []);
  return {
    address,
    authority,
    requests,
    lookup: Object.assign(lookup, { __promisify__: systemLookup.__promisify__ }) as typeof systemLookup,
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      authority.remove();
    },
  };
}
