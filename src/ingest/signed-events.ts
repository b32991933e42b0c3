import { hash } from 'node:crypto';
import type { EventContext } from '../core/event-context.ts';
import { type Provider, providers } from '../core/providers/providers.ts';
import { textAt } from '../core/text-at.ts';
import { bodyDigest } from './body-digest.ts';
import { headerValue } from './identifying-values.ts';
import type { ReceivedRequest } from './received-request.ts';

type SignedRequest = Pick<ReceivedRequest, 'signed'>;

/** Whether `signedIdentity` reads the parsed body. */
export function readsSignedPayload(provider: Provider, { signed }: SignedRequest): boolean {
  return signed !== null && typeof providers[provider].distinctContents === 'object';
}

/** Paths of the texts in the parsed body that `signedIdentity` reads. */
export function signedFields(provider: Provider, { signed }: SignedRequest): readonly string[] {
  const distinct = providers[provider].distinctContents;
  return signed !== null && typeof distinct === 'object' ? [...distinct.fields, 'action'] : [];
}

/**
 * The identity of a signed event, independent of the rest of the request, so that a recorded request is recognized under another unsigned id;
 * null when nothing is signed, or another event may have the same content.
 */
export function signedIdentity(provider: Provider, context: EventContext, { signed }: SignedRequest): string | null {
  const distinct = providers[provider].distinctContents;
  if (signed === null || distinct === 'never') return null;
  if (distinct === 'always') return contentIdentity('', signed);
  const { fields, exceptActions = [], kindHeader } = distinct;
  const { payload } = context;
  const action = textAt(payload, 'action');
  if (action !== null && exceptActions.includes(action)) return null;
  if (!fields.some((field) => textAt(payload, field) !== null)) return null;
  const kind = kindHeader === undefined ? '' : (headerValue(context.headers, kindHeader) ?? '').toLowerCase();
  return contentIdentity(kind, signed);
}

function contentIdentity(kind: string, { prefix, body }: NonNullable<ReceivedRequest['signed']>): string {
  // A header has no line break, so that no id is taken for such a text.
  return `signed\n${kind}\n${hash('sha256', prefix, 'hex')}\n${bodyDigest(body)}`;
}
