import type { Kind, PosthornKind } from '../../../src/resources/kinds.ts';

/** A manifest on which the API server and `admit` must agree. */
export interface ValidationCase {
  /** What is special about it; with the kind, the name of the test. */
  name: string;
  kind: Kind;
  /** The body; apiVersion, kind and missing parts of metadata are filled in. */
  object: Body;
  /** On updates: the object that is there before. */
  old?: Body;
  /** Absent: valid, and both sides set the same defaults. Else the field that both sides must name. */
  invalid?: string;
  /** The field that the API server names, where it is another. */
  invalidOnServer?: string;
}

export interface Body {
  metadata?: Record<string, unknown>;
  [field: string]: unknown;
}

export const text = (length: number, character = 'a'): string => character.repeat(length);
export const many = <T>(count: number, make: (index: number) => T): T[] => Array.from({ length: count }, (_, index) => make(index));
export const ref = (name: string): { name: string } => ({ name });
export const secretRef = { name: 'credentials', key: 'token' };

/** Cases of one kind whose objects differ in the spec only. */
export function specCases(kind: PosthornKind, base: Record<string, unknown>) {
  return {
    valid: (name: string, spec: Record<string, unknown>): ValidationCase => ({ name, kind, object: { spec: { ...base, ...spec } } }),
    invalid: (name: string, spec: Record<string, unknown>, field: string, invalidOnServer?: string): ValidationCase => ({
      name,
      kind,
      object: { spec: { ...base, ...spec } },
      invalid: field,
      ...(invalidOnServer !== undefined && { invalidOnServer }),
    }),
    validChange: (name: string, old: Record<string, unknown>, spec: Record<string, unknown>): ValidationCase => ({
      name,
      kind,
      old: { spec: { ...base, ...old } },
      object: { spec: { ...base, ...spec } },
    }),
    invalidChange: (name: string, old: Record<string, unknown>, spec: Record<string, unknown>, field: string): ValidationCase => ({
      name,
      kind,
      old: { spec: { ...base, ...old } },
      object: { spec: { ...base, ...spec } },
      invalid: field,
    }),
  };
}
