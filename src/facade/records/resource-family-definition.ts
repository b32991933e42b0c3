import type { z } from 'zod';
import type { ErrorCode } from '../../core/errors.ts';
import type { ObjectOf } from '../../resources/kinds.ts';
import type { FieldCodes } from '../http/body.ts';
import type { Call } from '../http/operation.ts';
import type { ServedKind } from '../http/services.ts';
import type { SentSecrets } from './secret-draft.ts';
import { type Synonyms, withoutSynonyms } from './synonyms.ts';
import type { Spec } from './write-rules.ts';

export interface SpecInput<K extends ServedKind, Body extends z.ZodObject> {
  call: Call;
  body: z.output<Body>;
  /** Absent on create. */
  current?: ObjectOf<K>;
  /** Makes the references of secret values that the body holds. */
  secrets: SentSecrets;
}

/**
 * A custom resource as records of the API: its schemas, and how they map. Routing, strict validation, paging, slugs,
 * field ownership, waiting until in force and the OpenAPI document come with it.
 */
export interface ResourceFamilyDefinition<K extends ServedKind, Body extends z.ZodObject, Query extends z.ZodObject> {
  kind: K;
  /** Heading, such as `Destinations`. */
  name: string;
  /** Such as `/destinations`. */
  path: string;
  description: string;
  /** A single record. Its fields that `body` does not have are read-only: sent back, they are ignored. */
  record: z.ZodObject;
  /** A record in a list. */
  item: z.ZodObject;
  /** Body of create and change, strict, every field optional, without defaults. */
  body: Body;
  fieldCodes?: FieldCodes;
  /** Fields of `body` that a create must have. */
  required: readonly (keyof z.output<Body> & string)[];
  /** Aliases of fields of `body`: `toSpec` never sees them. */
  synonyms?: Synonyms<NoInfer<K>>;
  /** For fields in `required`, another one that does as well. */
  standIns?: { readonly [field in keyof z.output<Body> & string]?: keyof z.output<Body> & string };
  /** Fields of `body` that take less on create, as the slug always does. */
  onCreate?: { readonly [field in keyof z.output<Body> & string]?: z.ZodType };
  /** Fields of `body` that cannot change, each with the values that an unchanged one may be sent as. */
  immutable: { readonly [field: string]: (object: ObjectOf<K>, call: Call) => unknown[] | Promise<unknown[]> };
  /** Follows `… cannot be changed: `. */
  whyImmutable?: string;
  /** The list is one response of all records, `{data}`, unless pages are requested. */
  isListedWhole?: true;
  /** A change may be sent with PUT, too. */
  alsoPut?: true;
  /** The filters of the list, and `pageQuery`, or `optionalPageQuery` when it is listed whole. */
  query: Query;
  /** `shown`: what a record reads as where it is not what was sent. */
  examples: { create: z.input<Body>; change: z.input<Body>; shown?: Readonly<Record<string, unknown>> };
  errors?: { create?: readonly ErrorCode[]; change?: readonly ErrorCode[]; delete?: readonly ErrorCode[] };
  /** Which cached objects a list keeps. */
  filter(query: z.output<Query>, call: Call): ((object: ObjectOf<K>) => boolean) | Promise<(object: ObjectOf<K>) => boolean>;
  toItem(object: ObjectOf<K>, call: Call): Promise<object>;
  toRecord(object: ObjectOf<K>, call: Call): Promise<object>;
  /** The whole new spec of the resource. Runs again when the object has changed meanwhile. */
  toSpec(input: SpecInput<K, Body>): Promise<Spec>;
  /** Kinds whose caches must be up to date while a spec is made; creates and changes then run one at a time per organization. */
  writesRead?: readonly ServedKind[];
  /** Runs before a deletion, which it may refuse, one at a time per organization; `looksAt`: kinds whose caches must be up to date then. */
  beforeDelete?: { looksAt: readonly ServedKind[]; run?(object: ObjectOf<K>, call: Call): Promise<void> };
}

/** The definition as writes go by it: its synonyms mean their fields. */
export function resourceDefinition<K extends ServedKind, Body extends z.ZodObject, Query extends z.ZodObject>({
  synonyms = {},
  ...definition
}: ResourceFamilyDefinition<K, Body, Query>): ResourceFamilyDefinition<K, Body, Query> {
  return {
    ...definition,
    synonyms,
    // The field of a synonym has the same type.
    toSpec: async (input) => definition.toSpec({ ...input, body: (await withoutSynonyms(synonyms, input)) as z.output<Body> }),
  };
}
