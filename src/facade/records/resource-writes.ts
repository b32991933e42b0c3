import type { z } from 'zod';
import { canonicalJson } from '../../core/canonical-json.ts';
import { isPosthornError, PosthornError } from '../../core/errors.ts';
import type { ObjectOf } from '../../resources/kinds.ts';
import { type BodyReading, parseBody } from '../http/body.ts';
import { requireVersion } from '../http/entity-tags.ts';
import type { Call, ChangePlan } from '../http/operation.ts';
import type { ServedKind } from '../http/services.ts';
import { find } from './lookup.ts';
import { nouns } from './nouns.ts';
import { objectTag } from './record-versions.ts';
import { madeBefore } from './request-keys.ts';
import type { ResourceFamilyDefinition } from './resource-family-definition.ts';
import { SecretDraft } from './secret-draft.ts';
import { refuseReservedSlug, slugOf, type WantedSlug } from './slug.ts';
import { pauseBeforeRetry } from './store-errors.ts';
import { planChange, refuseBeyondLimit, refuseInadmissible } from './write-rules.ts';
import { WriteTransaction } from './write-transaction.ts';

type Definition<K extends ServedKind, Body extends z.ZodObject, Query extends z.ZodObject> = Pick<
  ResourceFamilyDefinition<K, Body, Query>,
  'kind' | 'immutable' | 'whyImmutable' | 'toSpec' | 'writesRead' | 'beforeDelete'
>;

/** Creates the resource and its Secrets. Resolves once the resource is programmed. */
export async function createRecord<K extends ServedKind, Body extends z.ZodObject, Query extends z.ZodObject>(
  definition: Definition<K, Body, Query>,
  call: Call,
  body: z.output<Body>,
): Promise<ObjectOf<K>> {
  const { kind, writesRead } = definition;
  return await WriteTransaction.run(call, { reads: writesRead }, async (write) => {
    const made = await madeBefore(call, kind);
    const adopted = made === null ? null : await write.adopt(made);
    return adopted ?? (await writeNew(definition, call, write, wantedSlug(nouns[kind], body), body));
  });
}

/** The same as part of a transaction, under a given slug; `mark` as of `WriteTransaction.create`. */
export function writeNew<K extends ServedKind, Body extends z.ZodObject, Query extends z.ZodObject>(
  { kind, toSpec }: Definition<K, Body, Query>,
  call: Call,
  write: WriteTransaction,
  slug: WantedSlug,
  body: z.output<Body>,
  mark?: string,
): Promise<ObjectOf<K>> {
  return write.create(kind, slug, (secrets) => toSpec({ call, body, secrets }), mark);
}

/** Throws what `writeNew` would throw; writes nothing. */
export async function validateNew<K extends ServedKind, Body extends z.ZodObject, Query extends z.ZodObject>(
  { kind, toSpec }: Definition<K, Body, Query>,
  call: Call,
  body: z.output<Body>,
): Promise<void> {
  refuseBeyondLimit(call, kind);
  refuseInadmissible(call, kind, await toSpec({ call, body, secrets: new SecretDraft(call, 'dry-run') }));
}

/** Changes the resource and its Secrets. Resolves once the change is programmed. PRECONDITION_FAILED when the request is about another version of it. */
export async function changeRecord<K extends ServedKind, Body extends z.ZodObject, Query extends z.ZodObject>(
  definition: Definition<K, Body, Query>,
  call: Call,
  body: z.output<Body>,
): Promise<ObjectOf<K>> {
  const work = (write: WriteTransaction) => writeChange(definition, call, write, call.params['id'] ?? '', body);
  const changed = await WriteTransaction.run(call, { reads: definition.writesRead }, work);
  call.setEntityTag(objectTag(changed));
  return changed;
}

/** The same as part of a transaction. */
export function writeChange<K extends ServedKind, Body extends z.ZodObject, Query extends z.ZodObject>(
  definition: Definition<K, Body, Query>,
  call: Call,
  write: WriteTransaction,
  idOrSlug: string,
  body: z.output<Body>,
): Promise<ObjectOf<K>> {
  return write.change(definition.kind, idOrSlug, async (current, secrets) => {
    requireVersion(call, nouns[definition.kind], objectTag(current));
    const sent = await withoutImmutable(definition, call, current, body);
    return definition.toSpec({ call, body: sent, current, secrets });
  });
}

/** Throws what `writeChange` would throw; writes nothing. */
export async function validateChange<K extends ServedKind, Body extends z.ZodObject, Query extends z.ZodObject>(
  { kind, toSpec }: Definition<K, Body, Query>,
  call: Call,
  slug: string,
  body: z.output<Body>,
): Promise<void> {
  const current = await find(call, kind, slug);
  const spec = await toSpec({ call, body, current, secrets: new SecretDraft(call, slug, current) });
  planChange(current, spec);
  refuseInadmissible(call, kind, spec, current);
}

/** How a family validates the body of its PATCH without writing. `body` and `reading`: as of the operation. */
export function changePlan<K extends ServedKind, Body extends z.ZodObject, Query extends z.ZodObject>(
  definition: Definition<K, Body, Query>,
  body: Body,
  reading: BodyReading,
): ChangePlan {
  const { kind, toSpec } = definition;
  return {
    kind,
    validate: async (call, raw) => {
      const read = parseBody(body, raw, reading);
      const current = await find(call, kind, call.params['id'] ?? '');
      const sent = await withoutImmutable(definition, call, current, read);
      const secrets = new SecretDraft(call, current.metadata.name, current);
      const spec = await secrets.moved(await toSpec({ call, body: sent, current, secrets }));
      refuseInadmissible(call, kind, spec, current);
      return { current, spec };
    },
  };
}

/**
 * Deletes the resource and removes it from the routes that name it. Resolves once the resource has left the lists. PRECONDITION_FAILED when the request is about
 * another version of it.
 */
export async function deleteRecord<K extends ServedKind, Body extends z.ZodObject, Query extends z.ZodObject>(
  { kind, beforeDelete }: Definition<K, Body, Query>,
  call: Call,
): Promise<ObjectOf<K>> {
  return await WriteTransaction.run(call, { reads: beforeDelete?.looksAt }, async (write) => {
    for (let attempt = 1; ; attempt++) {
      const object = await find(call, kind, call.params['id'] ?? '');
      requireVersion(call, nouns[kind], objectTag(object));
      try {
        await write.delete([object], beforeDelete?.run);
        return object;
      } catch (error) {
        // A write of the status changes the version of the object in the store, not that of the record.
        if (call.ifMatch === null || !isPosthornError(error, 'CONFLICT')) throw error;
        await pauseBeforeRetry(kind, attempt, error);
      }
    }
  });
}

function wantedSlug(noun: string, body: Record<string, unknown>): WantedSlug {
  const { slug, name } = body;
  if (typeof slug !== 'string') return { base: slugOf(typeof name === 'string' ? name : '', noun.replaceAll(' ', '-')) };
  refuseReservedSlug(slug);
  return { exact: slug };
}

async function withoutImmutable<K extends ServedKind, Body extends z.ZodObject, Query extends z.ZodObject>(
  { immutable, whyImmutable }: Definition<K, Body, Query>,
  call: Call,
  current: ObjectOf<K>,
  body: z.output<Body>,
): Promise<z.output<Body>> {
  for (const [field, valuesOf] of Object.entries(immutable)) {
    const sent = (body as Record<string, unknown>)[field];
    if (sent === undefined) continue;
    const equal = (await valuesOf(current, call)).some((value) => canonicalJson(value) === canonicalJson(sent));
    const why = whyImmutable === undefined ? '' : `: ${whyImmutable}`;
    if (!equal)
      throw new PosthornError('VALIDATION_FAILED', `${field} cannot be changed${why}.`, { details: { [field]: ['cannot be changed'] } });
  }
  return body;
}
