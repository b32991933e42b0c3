import { eventually } from '../../test/support/eventually.ts';
import type { Sink } from '../bench/lib/sink.ts';

/** In the names of the REST API. */
export interface RouteOptions {
  retryPolicy?: { maxRetries: number; initialDelay: number; maxDelay: number; backoffMultiplier: number };
  /** Default: Orders. */
  sourceName?: string;
  /** Further settings of the destinations, in the order of the receivers. */
  settings?: readonly object[];
  circuit?: { circuitFailureThreshold: number; circuitCooldownSeconds: number };
}

const triesForLong = { maxRetries: 25, initialDelay: 100, maxDelay: 1000, backoffMultiplier: 2 };

/** Makes a source and a route of its own to each receiver; answers the path at which it takes events. */
export async function routesTo(
  sinks: readonly Sink[],
  api: { origin: string; key: string },
  { retryPolicy = triesForLong, circuit, sourceName = 'Orders', settings = [] }: RouteOptions = {},
): Promise<string> {
  const create = async (path: string, body: object): Promise<string> => {
    const headers = { 'x-api-key': api.key, 'content-type': 'application/json' };
    // 503 until the organization is published.
    return await eventually(`${path} to be taken`, 60_000, async () => {
      const answer = await fetch(`${api.origin}/api/${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
      if (answer.status !== 201) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
      return ((await answer.json()) as { id: string }).id;
    });
  };
  const sourceId = await create('sources', { name: sourceName, provider: 'generic' });
  for (const [i, { origin: url }] of sinks.entries()) {
    const id = await create('destinations', { name: `${sourceName} ${i}`, url, retryPolicy, ...settings[i] });
    await create('routes', { name: `${sourceName} route ${i}`, sourceId, destinationIds: [id], ...circuit });
  }
  return `/ingest/default/${sourceName.toLowerCase()}`;
}
