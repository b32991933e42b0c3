import type { Operations } from '../api/schema.ts';
import { memberTexts } from '../ui/json-layout.ts';
import type { Field } from './lab-kinds.ts';

export interface Outcome {
  result: 'passes' | 'fails' | 'skipped' | 'error';
  /** Why it does not pass, or what is to be known of it. */
  why: string[];
  /** What a transform was given and what it made, as they are written. */
  made?: { input: string; output: string };
}

/** Outcome of a filter with these fields. */
export function filterOutcome(fields: readonly Field[], answer: string): Outcome {
  const { matches, conditions }: Operations['POST /filters/test']['answer'] = JSON.parse(answer);
  if (matches) return { result: 'passes', why: [] };
  const wanted: { value?: unknown }[] = JSON.parse(fields.find(([name]) => name === 'conditions')?.[1] ?? '[]');
  const why = conditions.flatMap(({ field, operator, matches: isMet }, index) => {
    const value = wanted[index]?.value;
    return isMet ? [] : [`${field} ${operator}${value === undefined ? '' : ` ${JSON.stringify(value)}`} is not met`];
  });
  return { result: 'fails', why };
}

export function transformed(input: string, answer: string): Outcome {
  const members = memberTexts(answer) ?? new Map<string, string>();
  const textOf = (name: string): string | null => (members.has(name) ? String(JSON.parse(members.get(name) ?? '')) : null);
  if (members.get('success') !== 'true') return { result: 'error', why: [textOf('error') ?? 'The transform failed.'] };
  const output = members.get('output') ?? 'null';
  if (members.get('contentType') === 'null')
    return { result: 'fails', why: ['The transform has no output: the delivery would be filtered.'] };
  const warning = textOf('warning');
  const isText = textOf('contentType') !== 'application/json';
  const shown = isText ? String(JSON.parse(output)) : output;
  return { result: 'passes', why: warning === null ? [] : [warning], made: { input, output: shown } };
}

export function validated(answer: string): Outcome {
  const { valid, errors }: Operations['POST /schemas/test']['answer'] = JSON.parse(answer);
  return { result: valid ? 'passes' : 'fails', why: errors.map(({ path, message }) => (path === '' ? message : `${path} ${message}`)) };
}

/** An event as an expression sees it; all but its type as JSON texts. */
export interface SeenEvent {
  type: string;
  data: string;
  labels: string;
  metadata: string;
}

/** Outcome of the filters of a subscription. An expression that fails holds the event back, as it does for an event that is sent. */
export function subscribed(expression: string, seen: SeenEvent, answer: string): Outcome {
  const { matches, error, labels }: Operations['POST /webhook-subscriptions/test']['answer'] = JSON.parse(answer);
  if (matches) return { result: 'passes', why: [] };
  if (labels.length > 0)
    return {
      result: 'fails',
      why: labels.map(
        ({ label, expected, actual }) => `label ${label} is ${actual ?? 'missing'}, expected ${[expected].flat().join(' or ')}`,
      ),
    };
  const why = error === null ? 'The expression is false.' : `The expression fails: ${error}`;
  return { result: 'fails', why: [why, ...valuesIn(expression, seen).map(({ path, value }) => `${path} is ${value}`)] };
}

/** Matches texts in quotes, and the paths of the values that an expression reads. */
const tokens =
  /"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\b(?:event\.(?:type|data)|labels|metadata)((?:\.[A-Za-z_]\w*(?!\w*\s*\()|\[(?:"[^"\\]*"|'[^'\\]*')\])*)/g;
const step = /\.([A-Za-z_]\w*)|\[["']([^"']*)["']\]/g;
const maxValueLength = 80;

/** Returns the values of an event that an expression reads, each once. Of an element of a list it returns the list. */
export function valuesIn(expression: string, { type, data, labels, metadata }: SeenEvent): { path: string; value: string }[] {
  const roots: Readonly<Record<string, string>> = { 'event.type': JSON.stringify(type), 'event.data': data, labels, metadata };
  const paths = new Map<string, string>();
  for (const [path, steps] of expression.matchAll(tokens)) {
    if (steps === undefined) continue;
    let value = roots[path.slice(0, path.length - steps.length)];
    for (const [, name, quoted] of steps.matchAll(step)) value = memberTexts(value ?? '')?.get(name ?? quoted ?? '');
    paths.set(path, shortened(value ?? 'not there'));
  }
  return [...paths].map(([path, value]) => ({ path, value }));
}

function shortened(text: string): string {
  return text.length > maxValueLength ? `${text.slice(0, maxValueLength - 1)}…` : text;
}
