import type { ServerResponse } from 'node:http';
import { fetchOps } from './fetch-ops.ts';
import { answerLiveness, healthHandler, type OpsHandler, pathOf } from './ops-server.ts';
import type { RoleContext } from './role-process.ts';

const deadlineMs = 5000;

/** Health that a public port reports: of this process, or of the installation that it belongs to. */
export function publicHealth({ config, readiness }: Pick<RoleContext, 'config' | 'readiness'>): OpsHandler {
  return config.opsUpstream === undefined ? healthHandler(readiness) : upstreamHealth(config.opsUpstream);
}

/** Answers `/readyz` with another process's state of the installation; `/livez` is about this process alone. */
function upstreamHealth(upstream: string): OpsHandler {
  return (request, response) => {
    if (answerLiveness(request, response)) return true;
    if (pathOf(request) !== '/readyz') return false;
    void forward(`${upstream}/readyz`, response);
    return true;
  };
}

async function forward(url: string, response: ServerResponse): Promise<void> {
  try {
    const { status, contentType, text } = await fetchOps(url, deadlineMs);
    response.writeHead(status, { 'content-type': contentType }).end(text);
  } catch {
    response.writeHead(503, { 'content-type': 'application/json' }).end('{"status":"not ready"}\n');
  }
}
