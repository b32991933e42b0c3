import { PosthornError } from '../../../core/errors.ts';
import { kinds, type PosthornObject, type ServedKind, servedKinds } from '../../../resources/kinds.ts';
import type { Call } from '../../http/operation.ts';
import { findToRead, getByName } from '../../records/lookup.ts';

type DeclaredKind = 'WebhookApplication' | 'WebhookEndpoint' | 'WebhookSubscription';
export type ManifestKind = Exclude<ServedKind, 'ApiKey'> | DeclaredKind;

const servedHere = servedKinds.filter((kind) => kind !== 'ApiKey');

/** Kinds that are custom resources only where a manifest declares them: whether the organization has the record, and the object behind it. */
const declared: Readonly<Record<DeclaredKind, (call: Call, id: string) => Promise<{ managedBy: string | null } | null>>> = {
  WebhookApplication: ({ services, caller }, id) => services.webhooks.application(caller.organization.id, id),
  WebhookEndpoint: ({ services, caller }, id) => services.webhooks.endpoint(caller.organization.id, id),
  WebhookSubscription: ({ services, caller }, id) => services.webhooks.subscription(caller.organization.id, id),
};
const declaredKinds = ['WebhookApplication', 'WebhookEndpoint', 'WebhookSubscription'] as const satisfies readonly DeclaredKind[];

/** The kind of custom resource of the prefix of an id, but not of an API key; undefined: none. */
export function servedKindOf(id: string): Exclude<ServedKind, 'ApiKey'> | undefined {
  return servedHere.find((kind) => id.startsWith(kinds[kind].idPrefix));
}

/** The custom resource with this id. RESOURCE_NOT_FOUND for what is none, and for what the organization does not have. */
export async function findManifest(call: Call, id: string): Promise<PosthornObject<ManifestKind>> {
  const served = servedKindOf(id);
  if (served !== undefined) return await findToRead(call, served, id);
  const kind = declaredKinds.find((each) => id.startsWith(kinds[each].idPrefix));
  if (kind === undefined) throw unknown(id);
  const record = await declared[kind](call, id);
  if (record === null) throw unknown(id);
  if (record.managedBy === null)
    throw new PosthornError('RESOURCE_NOT_FOUND', `The ${kinds[kind].noun} was made through the API and has no manifest.`);
  const object = await getByName(call, kind, record.managedBy.slice(record.managedBy.indexOf('/') + 1));
  if (object === null) throw unknown(id);
  return object;
}

function unknown(id: string): PosthornError {
  const shown = id.length > 64 ? `${id.slice(0, 64)}…` : id;
  return new PosthornError('RESOURCE_NOT_FOUND', `There is no resource with the id "${shown}" that has a manifest.`);
}
