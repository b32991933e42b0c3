import type { PosthornKind, SpecOf } from './kinds.ts';
import type { Sharing } from './sharing-fields.ts';

/** The field of each kind that organizations can share, which an object that takes another over does not have. */
const contentFields = { Transform: 'code', Filter: 'conditions', PayloadSchema: 'jsonSchema' } as const;

export type SharedKind = keyof typeof contentFields;
export const sharedKinds = Object.keys(contentFields) as SharedKind[];

/** The spec of an object with a content of its own. */
export type ContentOf<K extends SharedKind> = {
  [Each in K]: SpecOf<Each> & Required<Pick<SpecOf<Each>, (typeof contentFields)[Each] & keyof SpecOf<Each>>>;
}[K];

export type SharedFrom = NonNullable<Sharing['sharedFrom']>;

export function isSharedKind(kind: PosthornKind): kind is SharedKind {
  return kind in contentFields;
}

/** The object whose spec is used; undefined: none, or the kind is not shared. */
export function sharedFromOf(spec: object): SharedFrom | undefined {
  return (spec as Sharing).sharedFrom;
}

/** The spec where it has a content of its own. */
export function ownContent<K extends SharedKind>(kind: K, spec: object): ContentOf<K> | undefined {
  const hasContent = sharedFromOf(spec) === undefined && contentFields[kind] in spec;
  return hasContent ? (spec as ContentOf<K>) : undefined;
}

/** The spec where the organization with this name may take its content over. */
export function contentSharedWith<K extends SharedKind>(kind: K, spec: object, organization: string): ContentOf<K> | undefined {
  const { sharedWith = [] } = spec as Sharing;
  return sharedWith.includes(organization) ? ownContent(kind, spec) : undefined;
}
