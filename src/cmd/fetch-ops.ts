import { text } from 'node:stream/consumers';
import { request } from '../core/node-http.ts';

export interface OpsResponse {
  status: number;
  contentType: string;
  text: string;
}

/**
 * The response of another process of this installation to GET. Rejects after `deadlineMs`. Not by `fetch`, which is 12 MB of
 * program; on a connection of its own, because a kept one may end during the request.
 */
export async function fetchOps(url: string, deadlineMs: number): Promise<OpsResponse> {
  const { promise, resolve, reject } = Promise.withResolvers<OpsResponse>();
  const asked = request(url, { agent: false, signal: AbortSignal.timeout(deadlineMs) });
  asked.once('error', reject);
  asked.once('response', (response) => {
    const { statusCode: status = 0, headers } = response;
    text(response).then((body) => resolve({ status, contentType: headers['content-type'] ?? 'text/plain', text: body }), reject);
  });
  asked.end();
  return await promise;
}
