import { compileFilter, MatchBudget, metByNone } from '../core/filter-evaluation.ts';
import { inOnePiece } from '../core/in-one-piece.ts';
import { parseJson, readJson } from '../core/read-json.ts';
import type { FilterDefinition } from '../core/records.ts';
import { textAt } from '../core/text-at.ts';
import type { Job, PayloadEvaluation } from './jobs.ts';

/** The filter results of an event, and the requested texts in its payload. */
export function evaluate({ filters, headers, query, fields, payload: text }: Extract<Job, { task: 'evaluate' }>): PayloadEvaluation {
  const payload = readJson(text);
  const budget = new MatchBudget();
  const definitions = parseJson(filters) as FilterDefinition[];
  const verdicts = definitions.map((filter) => {
    const untriedBefore = budget.untried;
    const pieces = compiled(filter).inPieces({ headers, query, payload }, budget);
    return { ...inOnePiece(pieces), isUntried: budget.untried > untriedBefore };
  });
  const found = fields.flatMap((path) => {
    const value = textAt(payload, path);
    return value === null ? [] : [[path, value] as const];
  });
  return { verdicts, fields: Object.fromEntries(found) };
}

function compiled(filter: FilterDefinition) {
  try {
    return compileFilter(filter);
  } catch {
    return metByNone;
  }
}
