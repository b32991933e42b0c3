import { base32Letters, randomBase32 } from '../../core/random.ts';

export type WebhookKind = 'application' | 'endpoint' | 'subscription';

/** Prefixes of ids by kind. */
export const webhookIdPrefixes = { application: 'app_', endpoint: 'ep_', subscription: 'sub_' } as const satisfies Record<
  WebhookKind,
  string
>;

const numberWidth = 10;
const pattern = /^[a-z]+_([a-z2-7]{10})([a-z2-7]{16})$/;

/** An id as the scripts look it up: its number is only a hint where the id is that of a custom resource. */
export interface WebhookIdParts {
  id: string;
  number: number;
  /** Distinguishes the id from others of the same number. */
  part: string;
}

/** Returns 80 random bits, which distinguish the id of a new record from others of its number. */
export function newIdPart(): string {
  return randomBase32(16);
}

/** The id of a record: `part` as it is stored, which is the whole id after its prefix where that is not made of a number. */
export function webhookId(kind: WebhookKind, number: number, part: string): string {
  return webhookIdPrefixes[kind] + (part.length > 16 ? part : encodeNumber(number) + part);
}

/** Null when it is no id of the kind. */
export function parseWebhookId(kind: WebhookKind, id: string): WebhookIdParts | null {
  const match = id.startsWith(webhookIdPrefixes[kind]) ? pattern.exec(id) : null;
  if (match === null) return null;
  let number = 0;
  for (const character of match[1] ?? '') number = number * 32 + base32Letters.indexOf(character);
  return { id, number, part: match[2] ?? '' };
}

/** Beyond what an organization counts to. Of the ids that are made of a `metadata.uid` one in a million is below it. */
const beyondNumbers = 2 ** 30;

/** Whether an id has the form of those that are given to what is made through the API. */
export function isNumberedId(kind: WebhookKind, id: string): boolean {
  const parts = parseWebhookId(kind, id);
  return parts !== null && parts.number < beyondNumbers;
}

function encodeNumber(number: number): string {
  let text = '';
  for (let rest = number; text.length < numberWidth; rest = Math.floor(rest / 32)) text = (base32Letters[rest % 32] ?? '') + text;
  return text;
}
