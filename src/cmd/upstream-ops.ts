import type { ServerResponse } from 'node:http';
import { askOps } from './ask-ops.ts';
import type { OpsHandler } from './ops-server.ts';

const deadlineMs = 5000;
const forwarded = ['/readyz', '/metrics'];

/** Answers for the installation what another process knows of it; `/livez` is about this process alone. */
export function upstreamOps(upstream: string): OpsHandler {
  return (request, response) => {
    const path = (request.url ?? '/').split('?', 1)[0] ?? '/';
    if (path === '/livez') {
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"status":"alive"}\n');
      return true;
    }
    if (!forwarded.includes(path)) return false;
    void forward(upstream + path, response);
    return true;
  };
}

async function forward(url: string, response: ServerResponse): Promise<void> {
  try {
    const { status, contentType, text } = await askOps(url, deadlineMs);
    response.writeHead(status, { 'content-type': contentType, 'cache-control': 'no-store' }).end(text);
  } catch {
    response.writeHead(503, { 'content-type': 'application/json' }).end('{"status":"not ready"}\n');
  }
}
