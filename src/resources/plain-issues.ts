import type { z } from 'zod';
import { fieldPath } from './field-tree.ts';

type Issue = z.core.$ZodIssue;

/**
 * The issues of a value as its sender can mend them: of a union those of the alternative that was meant, of a key what is wrong with
 * the key, and of each field the first; its other errors show when that is corrected.
 */
export function plainIssues(issues: readonly Issue[]): Issue[] {
  const reported = new Set<string>();
  return withOwnBounds(issues.flatMap(unfolded)).filter((issue) => {
    if (issue.code === 'unrecognized_keys' || issue.path.length === 0) return true;
    const field = fieldPath(issue.path);
    const isFirst = !reported.has(field);
    reported.add(field);
    return isFirst;
  });
}

/** Without the complaint about the range of whole numbers in JavaScript where the bound of the field itself is narrower. */
export function withOwnBounds(issues: readonly Issue[]): Issue[] {
  return issues.filter(
    (issue) => !isOfSafeRange(issue) || !issues.some((other) => isOwnBound(other) && isSamePath(other.path, issue.path)),
  );
}

function isOfSafeRange(issue: Issue): boolean {
  return (issue.code === 'too_big' || issue.code === 'too_small') && issue.origin === 'int';
}

function isOwnBound(issue: Issue): boolean {
  return (issue.code === 'too_big' || issue.code === 'too_small') && issue.origin === 'number';
}

function isSamePath(one: readonly PropertyKey[], other: readonly PropertyKey[]): boolean {
  return one.length === other.length && one.every((part, i) => part === other[i]);
}

function unfolded(issue: Issue): Issue[] {
  switch (issue.code) {
    case 'invalid_union': {
      const meant = issue.errors.find((alternative) => !alternative.some(isOfAnotherType)) ?? ofNoType(issue.errors);
      if (meant === undefined) return [issue];
      return meant.flatMap((inner) => unfolded({ ...inner, path: [...issue.path, ...inner.path] }));
    }
    case 'invalid_key': {
      const key = JSON.stringify(String(issue.path.at(-1)).slice(0, 100));
      const [wrong] = issue.issues;
      if (wrong === undefined) return [issue];
      return [{ code: 'custom', path: issue.path.slice(0, -1), message: `has the name ${key}: it ${wrong.message}`, params: {} }];
    }
    default:
      return [issue];
  }
}

/** The first of alternatives none of which has the type of the value, naming the types of all. */
function ofNoType([first, ...others]: readonly Issue[][]): Issue[] | undefined {
  const [issue] = first ?? [];
  const parts = issue === undefined ? null : /^must be (.+), not (.+)$/.exec(issue.message);
  if (issue === undefined || parts === null) return first;
  const types = new Set([parts[1], ...others.flatMap(([other]) => /^must be (.+), not /.exec(other?.message ?? '')?.[1] ?? [])]);
  return [{ ...issue, message: `must be ${[...types].join(' or ')}, not ${parts[2]}` }];
}

function isOfAnotherType({ code, path }: Issue): boolean {
  return code === 'invalid_type' && path.length === 0;
}
