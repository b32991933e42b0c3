import type { HeaderTemplate } from '../../../core/header-template.ts';
import { defaultPayloadForm, type PayloadForm } from '../../../core/payload-link.ts';
import type { HeaderRecord } from '../../../core/records.ts';
import type { AttemptView } from '../../../data/shard/messages.ts';
import type { Call } from '../../http/operation.ts';
import { holds, type Step } from './explanation.ts';
import type { Goal } from './wait-advice.ts';

/** Current settings of a target for its requests. */
export interface RequestSettings {
  payloadForm: PayloadForm;
  headers: readonly Pick<HeaderRecord, 'name'>[];
  headerTemplates: readonly HeaderTemplate[];
}

/** Null: the target is gone, or a store, which gets files. */
export async function requestSettingsOf(
  { services, caller }: Call,
  { destinationId, isForWebhook }: Goal,
): Promise<RequestSettings | null> {
  if (destinationId === null) return null;
  const org = caller.organization.id;
  if (isForWebhook) return await services.webhooks.endpoint(org, destinationId);
  const destination = await services.registry.getOf(org, 'destination', destinationId);
  if (destination?.type !== 'http') return null;
  const { payloadForm = defaultPayloadForm, headers, headerTemplates = [] } = destination.http;
  return { payloadForm, headers, headerTemplates };
}

/** Headers of the next attempt with these settings; empty for a target that sends the payload without headers of its own. */
export function settingsSteps(settings: RequestSettings | null): Step[] {
  if (settings === null) return [];
  const { payloadForm, headers, headerTemplates } = settings;
  const staticHeaders = headers.map(({ name }) => name);
  const parts = [
    ...(payloadForm === 'thin' ? ['a link to the payload as its body'] : []),
    ...named('static header', staticHeaders),
    ...named(
      'templated header',
      headerTemplates.map(({ name }) => name),
    ),
  ];
  if (parts.length === 0) return [];
  return [
    holds('settings', `By the settings of its target the next attempt has ${inOneList(parts)}.`, {
      payloadForm,
      staticHeaders,
      headerTemplates,
    }),
  ];
}

/** Which headers that its target sets were sent with an attempt, as far as its detail is kept: a sentence that follows another one, and its values. */
export function sentHeaders({ detail }: AttemptView, settings: RequestSettings | null): { text: string; data: Step['data'] } {
  const sent = new Set(detail?.requestHeaders?.map(([name]) => name.toLowerCase()));
  const names = [...(settings?.headers ?? []), ...(settings?.headerTemplates ?? [])].map(({ name }) => name);
  const ownHeaders = names.filter((name) => sent.has(name.toLowerCase()));
  if (ownHeaders.length === 0) return { text: '', data: {} };
  return { text: ` Of the headers that its target sets now it had ${inOneList(ownHeaders)}.`, data: { ownHeaders } };
}

function named(what: string, names: readonly string[]): string[] {
  return names.length === 0 ? [] : [`the ${what}${names.length === 1 ? '' : 's'} ${inOneList(names)}`];
}

function inOneList(parts: readonly string[]): string {
  return parts.length < 2 ? parts.join('') : `${parts.slice(0, -1).join(', ')} and ${parts.at(-1)}`;
}
