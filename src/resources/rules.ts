import { isDeepStrictEqual } from 'node:util';
import type { Cause } from './causes.ts';
import type { Rule } from './definition.ts';
import { fieldPath, isRecord } from './field-tree.ts';

/**
 * Errors of the cross-field rules about a spec that its schema accepts, each at the position that the rule's `at`
 * names; transition rules run where there is an old value too, as CEL rules with `oldSelf` do. Rules that spare what is stored spare each value that the old
 * spec has there.
 */
export function brokenRules(rules: readonly Rule[], spec: unknown, oldSpec: unknown): Cause[] {
  return rules.flatMap((rule) =>
    valuesAt(spec, rule.at).flatMap(({ value, path }): Cause[] => {
      const [old] = rule.transition === true ? valuesAt(oldSpec, rule.at) : [];
      if (rule.transition === true && old === undefined) return [];
      if (rule.check(value, old?.value)) return [];
      if (rule.sparesStored === true && valuesAt(oldSpec, rule.at).some((each) => isDeepStrictEqual(each.value, value))) return [];
      return [{ field: fieldPath(['spec', ...path]) + (rule.fieldPath ?? ''), message: rule.message }];
    }),
  );
}

interface Place {
  value: unknown;
  path: PropertyKey[];
}

/** Every value at `a.b[].c`; none where a part is absent. */
function valuesAt(root: unknown, at: string): Place[] {
  let places: Place[] = root === undefined ? [] : [{ value: root, path: [] }];
  for (const part of at.split('.').filter((each) => each !== '')) {
    const name = part.replace(/\[\]$/, '');
    places = places.flatMap(({ value, path }) =>
      isRecord(value) && value[name] !== undefined ? [{ value: value[name], path: [...path, name] }] : [],
    );
    if (part === name) continue;
    places = places.flatMap(({ value, path }) =>
      Array.isArray(value) ? value.map((item: unknown, index): Place => ({ value: item, path: [...path, index] })) : [],
    );
  }
  return places;
}
