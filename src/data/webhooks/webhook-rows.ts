import { list, text } from '../shard/script-reply.ts';
import { webhookId } from './webhook-ids.ts';
import { decodeApplication, decodeEndpoint, decodeSubscription } from './webhook-records.ts';
import type { WebhookApplication, WebhookEndpoint, WebhookSubscription } from './webhooks.ts';

/** An object with the record that it was made of, so that it can be replaced. */
export interface Row<T> {
  number: number;
  record: string;
  object: T;
  /** The reply of the script. */
  reply: readonly string[];
}

/** From the rows of `includes/webhooks.lua`. */
export function applicationRow(org: string, reply: unknown): Row<WebhookApplication> {
  const texts = list(reply).map(text);
  const [number = '', record = ''] = texts;
  const { part, json } = recordParts(record);
  const object = { id: webhookId('application', Number(number), part), org, ...decodeApplication(json) };
  return { number: Number(number), record, object, reply: texts };
}

export function endpointRow(org: string, reply: unknown): Row<WebhookEndpoint> {
  const texts = list(reply).map(text);
  const [number = '', record = '', application = '', applicationPart = ''] = texts;
  const { part, json } = recordParts(record);
  const id = webhookId('endpoint', Number(number), part);
  const applicationId = webhookId('application', Number(application), applicationPart);
  return { number: Number(number), record, object: { id, org, applicationId, ...decodeEndpoint(json) }, reply: texts };
}

export function subscriptionRow(org: string, reply: unknown): Row<WebhookSubscription> {
  const texts = list(reply).map(text);
  const [number = '', record = '', endpoint = '', endpointPart = '', application = '', applicationPart = '', eventTypeId = ''] = texts;
  const { part, json } = recordParts(record);
  const above = {
    endpointId: webhookId('endpoint', Number(endpoint), endpointPart),
    applicationId: webhookId('application', Number(application), applicationPart),
    eventTypeId,
  };
  const object = { id: webhookId('subscription', Number(number), part), org, ...above, ...decodeSubscription(json) };
  return { number: Number(number), record, object, reply: texts };
}

/** The record with other JSON. */
export function withJson(record: string, json: string): string {
  return record.slice(0, record.indexOf('{')) + json;
}

/** What tells the id from others of its number, and the JSON. */
export function recordParts(record: string): { part: string; json: string } {
  return { part: record.slice(0, record.indexOf(' ')), json: record.slice(record.indexOf('{')) };
}
