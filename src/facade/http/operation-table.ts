import { PosthornError } from '../../core/errors.ts';
import type { Operation } from './operation.ts';

export interface FoundPath {
  /** Each with another method. */
  operations: readonly Operation[];
  params: Readonly<Record<string, string>>;
}

const noParams = {};

/** Finds operations by their paths. Fixed paths come before those with parameters, which would catch them. */
export class OperationTable {
  readonly #fixed = new Map<string, readonly Operation[]>();
  readonly #patterns: { pattern: RegExp; operations: readonly Operation[] }[] = [];

  constructor(operations: readonly Operation[]) {
    const parameters = (path: string): number => path.split('{').length;
    const byPath = [...Map.groupBy(operations, ({ path }) => path)].sort(([one], [other]) => parameters(one) - parameters(other));
    for (const [path, group] of byPath) {
      if (parameters(path) === 1) this.#fixed.set(path, group);
      else this.#patterns.push({ pattern: new RegExp(`^${path.replaceAll(/\{(\w+)\}/g, '(?<$1>[^/]+)')}$`), operations: group });
    }
  }

  /** `path`: below `/api` or an organization; a slash at its end means nothing. NOT_FOUND when there is none. */
  find(path: string): FoundPath {
    const known = path.endsWith('/') ? path.slice(0, -1) : path;
    const fixed = this.#fixed.get(known);
    if (fixed !== undefined) return { operations: fixed, params: noParams };
    for (const { pattern, operations } of this.#patterns) {
      const found = pattern.exec(known);
      if (found !== null) return { operations, params: decoded(found.groups ?? noParams) };
    }
    throw nothingHere();
  }
}

export function nothingHere(): PosthornError {
  return new PosthornError('NOT_FOUND', 'There is nothing at this path.');
}

function decoded(params: Readonly<Record<string, string>>): Record<string, string> {
  try {
    return Object.fromEntries(Object.entries(params).map(([name, value]) => [name, decodeURIComponent(value)]));
  } catch {
    throw nothingHere();
  }
}
