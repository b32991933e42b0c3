import { memberTexts } from '../ui/json-layout.ts';
import type { Field, KindOfLab, Stored } from './lab-kinds.ts';
import { type Manifest, objectNameOf } from './lab-yaml.ts';

export interface Edited {
  /** What it came from; null: it is a new one. */
  stored: Stored | null;
  /** Empty: none is given. */
  newName: string;
  /** Null: the text is empty. */
  fields: Field[] | null;
  isChanged: boolean;
}

/**
 * The manifest of the object that was opened, or of another one where a name is given. What another organization shares has no content here, so once
 * changed it is another one too. Null: there is nothing to write.
 */
export function manifestOf({ resource, word }: KindOfLab, { stored, newName, fields, isChanged }: Edited): Manifest | null {
  const isEventType = resource === 'WebhookEventType';
  const shown = newName || (stored?.name ?? (isEventType ? 'lab.tried' : `Lab ${word.toLowerCase()}`));
  const named: Field = ['name', JSON.stringify(shown)];
  if (stored !== null && newName === '') {
    const { slug, sharedFrom, others } = stored;
    if (sharedFrom !== null && !isChanged)
      return { kind: resource, name: slug, spec: [named, ...others, ['sharedFrom', JSON.stringify(sharedFrom)]] };
    if (sharedFrom === null && fields !== null) return { kind: resource, name: slug, spec: [named, ...others, ...fields] };
  }
  if (fields === null) return null;
  // The object of an event type has the name of the type.
  if (isEventType) return { kind: resource, name: shown.replaceAll('_', '-'), spec: [named, ...fields] };
  const name = objectNameOf(newName || (stored?.slug ?? shown), `lab-${word.toLowerCase()}`, stored?.slug);
  return { kind: resource, name, spec: [named, ...fields] };
}

/** Custom resources that a subscription refers to. */
export interface SubscriptionRefs {
  /** The object of the subscription itself; null: the API made it, or it is a new one. */
  own: string | null;
  /** Null: the API made the endpoint, or none is chosen. */
  endpoint: string | null;
  transform: string | null;
}

/** Placeholder for the name of an endpoint without a manifest; no object can have it. */
export const unknownEndpoint = 'ENDPOINT';

export interface EditedSubscription extends Pick<Edited, 'stored' | 'fields'> {
  /** Another one is made. It has the label filters of what was opened, because these were tried with the expression. */
  isNew: boolean;
  /** Name of the event type of a new one; null: none is chosen. */
  eventType: string | null;
}

/** The same of a subscription. Null: there is nothing to write. */
export function subscriptionManifest(
  { own, endpoint, transform }: SubscriptionRefs,
  { stored, isNew, eventType, fields }: EditedSubscription,
): Manifest | null {
  const type = isNew || stored === null ? eventType : stored.eventType;
  if (fields === null || type === null) return null;
  const typeObject = type.replaceAll('_', '-');
  const others = (stored?.others ?? []).filter(([field]) => !isNew || field === 'labelFilterMode');
  return {
    kind: 'WebhookSubscription',
    name: own ?? objectNameOf(`${endpoint ?? 'lab'} ${typeObject}`, 'lab-subscription'),
    spec: [
      ['endpointRef', JSON.stringify({ name: endpoint ?? unknownEndpoint })],
      ['eventTypeRef', JSON.stringify({ name: typeObject })],
      ...labelFiltersOf(stored),
      ...others,
      ...(transform === null ? [] : [['transformRef', JSON.stringify({ name: transform })] satisfies Field]),
      ...fields,
    ],
  };
}

/** A manifest has the labels as a list. */
function labelFiltersOf(stored: Stored | null): Field[] {
  const written = stored?.subscription?.labels.find(([field]) => field === 'labelFilters')?.[1] ?? '{}';
  const filters = [...(memberTexts(written) ?? [])].map(([key, values]) => ({ key, values: [JSON.parse(values)].flat() }));
  return filters.length === 0 ? [] : [['labelFilters', JSON.stringify(filters)]];
}
