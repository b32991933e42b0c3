import { z } from 'zod';
import { payloadForms } from '../../../core/payload-link.ts';
import { type SentAs, type SignedTarget, sentForm } from '../../../core/sent-as.ts';
import { signatureSchemes } from '../../../core/signature-scheme.ts';
import type { Call } from '../../http/operation.ts';

/** How an attempt sends its message, in its record. */
export const sentFormFields = {
  payloadForm: z.enum(payloadForms).describe('What the body is: full: the payload; thin: a link to it.'),
  signatureScheme: z.enum(signatureSchemes).nullable().describe('What signs the request; null: nothing.'),
};

/** Null: a store, which gets files. A destination that is gone counts as one of HTTP. */
export async function signedTarget({ services, caller }: Call, destinationId: string | null): Promise<SignedTarget | null> {
  const destination = destinationId === null ? null : await services.registry.getOf(caller.organization.id, 'destination', destinationId);
  return destination === null || destination.type === 'http' ? 'destination' : null;
}

/** The same in a story: a sentence that follows another one, and its values. */
export function sentFormStep(target: SignedTarget | null, own: SentAs | undefined): { text: string; data: Record<string, unknown> } {
  if (target === null) return { text: '', data: {} };
  const { payloadForm, signatureScheme } = sentForm(target, own);
  const body = payloadForm === 'thin' ? 'a link to the payload' : 'the payload';
  const signature = signatureScheme === null ? 'unsigned' : `signed with ${signatureWords[signatureScheme]}`;
  return { text: ` Its body is ${body}, ${signature}.`, data: { payloadForm, signatureScheme } };
}

const signatureWords = { 'hmac-sha256': 'hmac-sha256', ed25519: 'ed25519', both: 'hmac-sha256 and ed25519' } as const;
