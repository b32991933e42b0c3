import { z } from 'zod';
import { eventually } from './eventually.ts';

const deadlineMs = 60_000;
const withId = z.looseObject({ id: z.string() });
const manifest = z.object({ conditions: z.array(z.object({ type: z.string(), status: z.string() })) });

/**
 * As `fetch`, for the REST API. What a POST has made is in force once it returns: the API itself waits for two seconds, and its response has the header
 * Warning where that is too short for a busy machine.
 */
export async function fetchProgrammed(url: string, request: RequestInit): Promise<Response> {
  const response = await fetch(url, request);
  if (request.method !== 'POST' || !response.headers.get('warning')?.includes('not yet in force')) return response;
  const id = idIn(await response.clone().json());
  const { headers = {} } = request;
  await eventually(`${id} to be programmed`, deadlineMs, async () => {
    const answer = await fetch(`${url.slice(0, url.indexOf('/api/'))}/api/manifests/${id}`, { headers });
    return manifest.parse(await answer.json()).conditions.some(({ type, status }) => type === 'Programmed' && status === 'True');
  });
  return response;
}

/** Id of the record that a response has; some families wrap it. */
function idIn(body: unknown): string {
  const places = [body, ...(typeof body === 'object' && body !== null ? Object.values(body) : [])];
  for (const place of places) {
    const { data } = withId.safeParse(place);
    if (data !== undefined) return data.id;
  }
  throw new Error(`no id in ${JSON.stringify(body)}`);
}
