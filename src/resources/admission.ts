import { z } from 'zod';
import type { Cause } from './causes.ts';
import { complaints } from './complaints.ts';
import { brokenSecretRules } from './core-kinds.ts';
import { apiVersion } from './definition.ts';
import { type FieldNode, isRecord } from './field-tree.ts';
import { type Kind, kindPath, kinds, type ObjectOf, type PosthornKind } from './kinds.ts';
import { duplicateItems } from './list-duplicates.ts';
import type { ObjectMeta } from './metadata.ts';
import { nameRules } from './names.ts';
import { pruneNulls } from './null-pruning.ts';
import { objectSchema } from './object-schema.ts';
import { parseWithNumbers } from './plain-numbers.ts';
import { brokenRules } from './rules.ts';

/** An object as it may be stored; the store sets what is the server's (`uid`, versions, times, `status`). */
export type Admitted<K extends Kind> = Omit<ObjectOf<K>, 'metadata' | 'status'> & {
  metadata: Partial<ObjectMeta> & Pick<ObjectMeta, 'name'>;
};

export type Admission<T> = { object: T; causes?: undefined } | { object?: undefined; causes: Cause[] };

/**
 * Does to an object what the API server does with our CRDs (strict field validation): drops nulls of fields that are not
 * nullable, refuses unknown fields at every level, checks types and bounds, sets defaults, then applies the rules that
 * span fields, those on changes against `old`. Secrets get their `stringData` merged into `data`. `apiVersion` and
 * `kind` may be absent, else they must fit. `status` is left out, as on a write to the main resource; only unknown fields
 * in it are refused. Use `admitStatus` for the subresource. Pure: neither `input` nor `old` is changed.
 */
export function admit<K extends Kind>(kind: K, input: unknown, old?: ObjectOf<K>): Admission<Admitted<K>> {
  if (!isRecord(input)) return { causes: [{ field: '', message: 'must be an object with apiVersion, kind, metadata and spec' }] };
  const { schema, tree } = objectSchema(kind);
  const named = { apiVersion: kind === 'Secret' || kind === 'Namespace' ? 'v1' : apiVersion, kind, ...input };
  const parsed = parseWithNumbers(schema, pruneNulls(named, tree));
  if (!parsed.success) return { causes: complaints(parsed.error, []) };
  const { status, ...object } = withoutForeignNamespace(kind, parsed.data);
  const causes = [
    ...unknownStatusFields(kind, status),
    ...duplicateItems({ spec: object['spec'] }, tree, []),
    ...brokenObjectRules(kind, object, old),
  ];
  // The schema is the kind's own: what it has parsed is an object of the kind.
  return causes.length > 0 ? { causes } : { object: object as Admitted<K> };
}

function unknownStatusFields(kind: Kind, status: unknown): Cause[] {
  if (kind === 'Namespace' || kind === 'Secret' || !isRecord(status)) return [];
  const parsed = kinds[kind].status.safeParse(status);
  if (parsed.success) return [];
  const unknown = parsed.error.issues.filter((issue) => issue.code === 'unrecognized_keys');
  return complaints(new z.ZodError(unknown), ['status']);
}

/** The API server drops a namespace from an object of a cluster-scoped kind without a word. */
function withoutForeignNamespace(kind: Kind, object: Record<string, unknown>): Record<string, unknown> {
  if (kindPath(kind).namespaced || !isRecord(object['metadata'])) return object;
  const { namespace: _, ...metadata } = object['metadata'];
  return { ...object, metadata };
}

/** The same for a write to the status subresource: the status as it may be stored. */
export function admitStatus<K extends PosthornKind>(kind: K, status: unknown): Admission<Record<string, unknown>> {
  const schema = kinds[kind].status;
  const tree = statusTree(kind);
  const parsed = parseWithNumbers(schema, pruneNulls(status, tree));
  if (!parsed.success) return { causes: complaints(parsed.error, ['status']) };
  const causes = duplicateItems(parsed.data, tree, ['status']);
  return causes.length > 0 ? { causes } : { object: parsed.data };
}

function statusTree(kind: PosthornKind): FieldNode {
  const { tree } = objectSchema(kind);
  return (tree.type === 'object' ? tree.fields.get('status') : undefined) ?? tree;
}

function brokenObjectRules(kind: Kind, object: Record<string, unknown>, old: ObjectOf<Kind> | undefined): Cause[] {
  switch (kind) {
    case 'Namespace':
      return [];
    case 'Secret':
      return brokenSecretRules(object, old?.kind === 'Secret' ? old : undefined);
    default: {
      const oldSpec = old !== undefined && 'spec' in old ? old.spec : undefined;
      return [...brokenNameRules(kind, object), ...brokenRules(kinds[kind].rules, object['spec'], oldSpec)];
    }
  }
}

function brokenNameRules(kind: Kind, object: Record<string, unknown>): Cause[] {
  const name = isRecord(object['metadata']) ? object['metadata']['name'] : undefined;
  if (typeof name !== 'string') return [];
  const broken = nameRules.filter((rule) => rule.appliesTo(kind) && !rule.check(name, object['spec']));
  return broken.map(({ message }) => ({ field: 'metadata.name', message }));
}
