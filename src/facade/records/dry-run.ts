import type { z } from 'zod';
import { PosthornError } from '../../core/errors.ts';
import { admit } from '../../resources/admission.ts';
import type { ObjectOf } from '../../resources/kinds.ts';
import type { Call } from '../http/operation.ts';
import type { ServedKind } from '../http/services.ts';
import { find } from './lookup.ts';
import type { ResourceFamilyDefinition } from './resource-family-definition.ts';
import { SecretDraft } from './secrets.ts';
import { forClients } from './store-errors.ts';
import { planChange, refuseBeyondLimit, type Spec } from './write.ts';

type Definition<K extends ServedKind> = Pick<ResourceFamilyDefinition<K, z.ZodObject, z.ZodObject>, 'kind' | 'toSpec'>;

/** Throws what creating the resource would be refused with; writes nothing. */
export async function judgeNew<K extends ServedKind>(definition: Definition<K>, call: Call, body: Record<string, unknown>): Promise<void> {
  refuseBeyondLimit(call, definition.kind);
  const secrets = new SecretDraft(call, 'dry-run');
  refuseInadmissible(call, definition.kind, await definition.toSpec({ call, body, secrets }));
}

/** Throws what changing the resource would be refused with; writes nothing. */
export async function judgeChange<K extends ServedKind>(
  definition: Definition<K>,
  call: Call,
  slug: string,
  body: Record<string, unknown>,
): Promise<void> {
  const current = await find(call, definition.kind, slug);
  const spec = await definition.toSpec({ call, body, current, secrets: new SecretDraft(call, slug, current) });
  planChange(current, spec);
  refuseInadmissible(call, definition.kind, spec, current);
}

/** VALIDATION_FAILED for a spec that the store would refuse. */
export function refuseInadmissible<K extends ServedKind>(call: Call, kind: K, spec: Spec, current?: ObjectOf<K>): void {
  const { namespace } = call.caller.organization;
  const name = current?.metadata.name ?? 'dry-run';
  const { causes } = admit(kind, { metadata: { name, namespace }, spec }, current);
  if (causes === undefined) return;
  const details = Object.fromEntries(causes.map(({ field, message }) => [field, [message]]));
  throw forClients(new PosthornError('VALIDATION_FAILED', 'The resource is not valid.', { details }), kind);
}
