import { z } from 'zod';
import type { Cause } from './causes.ts';
import { fieldPath } from './field-tree.ts';
import { withOwnBounds } from './plain-issues.ts';

/** Errors of zod about a value, as causes below `base`. */
export function complaints(error: z.ZodError, base: readonly PropertyKey[]): Cause[] {
  return withOwnBounds(error.issues).flatMap((issue): Cause[] => {
    const path = [...base, ...issue.path];
    if (issue.code !== 'unrecognized_keys') return [{ field: fieldPath(path), message: issue.message }];
    return issue.keys.map((key) => ({
      field: fieldPath([...path, key]),
      message: 'is not a field of this kind; remove it or correct its name',
    }));
  });
}

/** The error map that words zod's own complaints as what to do. Messages given in a schema win over it. */
export const wording: z.core.$ZodErrorMap = (issue) => {
  switch (issue.code) {
    case 'invalid_type':
      if (typeof issue.input === 'number' && issue.inst instanceof z.ZodNumber) return outOfRange(issue.input, issue.inst);
      return wrongType(issue.expected, issue.input);
    case 'invalid_value':
      return issue.input === undefined ? 'is required' : `must be ${issue.values.length === 1 ? '' : 'one of '}${issue.values.join(', ')}`;
    case 'too_small':
      if (issue.minimum === 1 && unit(issue.origin) !== '') return 'must not be empty';
      return `must be at least ${issue.minimum}${unit(issue.origin)}`;
    case 'too_big':
      return `must be at most ${issue.maximum}${unit(issue.origin)}`;
    case 'invalid_format':
      if (issue.format === 'datetime') return 'must be a time in ISO 8601 with an offset, such as 2026-01-31T12:00:00Z';
      return `must match ${issue.pattern ?? issue.format}`;
    default:
      return undefined;
  }
};

/** Error of a number that is no whole one, or too large for any: JSON may have 1e400. */
function outOfRange(input: number, { minValue, maxValue }: z.ZodNumber): string {
  if (Number.isFinite(input)) return wrongType('int', input);
  const bound = input > 0 ? maxValue : minValue;
  if (bound === null || !Number.isFinite(bound)) return 'must be a finite number';
  return input > 0 ? `must be at most ${bound}` : `must be at least ${bound}`;
}

/** Error of a value that is not of the type that zod expects. */
export function wrongType(expected: string, input: unknown): string {
  if (input === undefined) return 'is required';
  if (expected === 'int' && typeof input === 'number') return 'must be a whole number';
  return `must be ${withArticle(expected)}, not ${withArticle(typeName(input))}`;
}

function unit(origin: string): string {
  switch (origin) {
    case 'string':
      return ' characters long';
    case 'array':
    case 'set':
      return ' items long';
    default:
      return '';
  }
}

function typeName(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'list';
  return typeof value;
}

function withArticle(type: string): string {
  switch (type) {
    case 'null':
      return 'null';
    case 'array':
      return 'a list';
    case 'record':
      return 'an object';
    case 'int':
      return 'a whole number';
    case 'object':
      return 'an object';
    default:
      return `a ${type}`;
  }
}
