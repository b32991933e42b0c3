import { type Answer, ApiError, type CallOptions, type Input, readBytes } from '../../api/client.ts';
import { memberTexts } from '../../ui/json-layout.ts';

type Name = 'GET /manifests/{id}' | 'POST /manifests/{id}/patch';

/** An answer, and the object that it is about as it is written: its numbers with all their digits. */
export interface Exact<Of extends Name> {
  answer: Answer<Of>;
  json: string;
}

const members = { 'GET /manifests/{id}': 'manifest', 'POST /manifests/{id}/patch': 'patch' } as const;

/** Throws ApiError. */
export async function readExact<Of extends Name>(name: Of, input: Input<Of>, options: CallOptions): Promise<Exact<Of>> {
  const text = new TextDecoder().decode(await readBytes(name, input, options));
  const json = memberTexts(text)?.get(members[name]);
  if (json === undefined) throw new ApiError('The answer of the API is not read.', { status: 0, code: 'UNREADABLE' });
  return { answer: JSON.parse(text), json };
}
