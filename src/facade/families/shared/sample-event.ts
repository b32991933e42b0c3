import { z } from 'zod';
import { maxQueryLength } from '../../../core/sent-query.ts';
import { bodyMember } from '../../http/body-member.ts';
import type { Call } from '../../http/operation.ts';

/** Parts of an event of a test. */
export const sampleEvent = {
  payload: z.unknown().optional().describe('Payload of the event; any JSON. Default: an empty object.'),
  headers: z.record(z.string().max(256), z.string().max(8192)).optional().describe('Headers of the event.'),
  query: z.string().max(maxQueryLength).optional().describe('Query of the URL that the event came to, as device=7&state=on.'),
};

export type SampleEvent = z.output<z.ZodObject<typeof sampleEvent>>;

/** An omitted payload is an empty object; null is a payload. */
export function samplePayload({ payload = {} }: SampleEvent): unknown {
  return payload;
}

/** The same as JSON text, as in the body. */
export async function samplePayloadText(call: Pick<Call, 'bodyBytes' | 'turn' | 'signal'>): Promise<Buffer> {
  return (await bodyMember(call, 'payload')) ?? Buffer.from('{}');
}

/** Names in lower case, as they are of an event. */
export function sampleHeaders({ headers = {} }: SampleEvent): [string, string][] {
  return Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]);
}
