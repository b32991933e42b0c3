import { canonicalJson } from '../../core/canonical-json.ts';
import { parseWebhookId, type WebhookKind } from './webhook-ids.ts';
import type { WebhookTarget } from './webhook-notes.ts';
import { encodeApplication, encodeEndpoint, encodeSubscription } from './webhook-records.ts';
import { applicationRow, endpointRow, type Row, subscriptionRow } from './webhook-rows.ts';
import type { WebhookLetters } from './webhook-scripts.ts';
import type { WebhookApplication, WebhookEndpoint, WebhookSubscription } from './webhooks.ts';

/** Description of a kind for the store. */
export interface KindOfWebhooks<T> {
  kind: WebhookKind;
  letters: WebhookLetters;
  row(org: string, reply: unknown): Row<T>;
  /** Number of texts in a row. */
  rowLength: number;
  /** JSON of the record. */
  encode(object: T): string;
  /** Data of the object that scripts store besides its record; null: none. */
  indexed(object: T): { externalId: string; name: string } | null;
  /** Whether a change of these makes other messages of an event. */
  matched(object: T): unknown[];
  /** Whose queues a change of it concerns. */
  target?(object: T): WebhookTarget;
}

export const applicationKind: KindOfWebhooks<WebhookApplication> = {
  kind: 'application',
  letters: 'ap',
  row: applicationRow,
  rowLength: 2,
  encode: encodeApplication,
  indexed: ({ externalId, name }) => ({ externalId: externalId ?? '', name: nameKey(name) }),
  matched: ({ isDisabled }) => [isDisabled],
  target: ({ org, id }) => ({ org, applicationId: id, endpointId: null }),
};

export const endpointKind: KindOfWebhooks<WebhookEndpoint> = {
  kind: 'endpoint',
  letters: 'ep',
  row: endpointRow,
  rowLength: 4,
  encode: encodeEndpoint,
  indexed: () => null,
  matched: ({ url, isDisabled, retryDelaysSeconds, expiresAfterSeconds }) => [
    url,
    isDisabled,
    retryDelaysSeconds?.length ?? null,
    expiresAfterSeconds,
  ],
  target: ({ org, applicationId, id }) => ({ org, applicationId, endpointId: id }),
};

export const subscriptionKind: KindOfWebhooks<WebhookSubscription> = {
  kind: 'subscription',
  letters: 'sb',
  row: subscriptionRow,
  rowLength: 7,
  encode: encodeSubscription,
  indexed: () => null,
  matched: ({ filterExpression, labelFilters, labelFilterMode, transformId, isEnabled }) => [
    filterExpression,
    labelFilters,
    labelFilterMode,
    transformId,
    isEnabled,
  ],
};

/** Whether an event would match otherwise after the change. */
export function changesMatching<T>({ matched }: KindOfWebhooks<T>, before: T, after: T): boolean {
  return canonicalJson(matched(before)) !== canonicalJson(matched(after));
}

/** Sort key of applications: a beginning of the name that few share. */
function nameKey(name: string): string {
  return Array.from(name.toLowerCase().replaceAll('\0', '')).slice(0, 100).join('');
}

/** What names an object to a script; of what is no id, one of nothing. */
export function idParts(kind: WebhookKind, id: string): { id: string; number: number; part: string } {
  const { id: known, number, part } = parseWebhookId(kind, id) ?? { id: '', number: 0, part: '-' };
  return { id: known, number, part };
}
