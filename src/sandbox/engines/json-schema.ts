import { _, Ajv, type ErrorObject, type FuncKeywordDefinition, type Options, str, type ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { LRUCache } from 'lru-cache';
import { RE2JS } from 're2js';
import { parsePlainJson } from '../../core/plain-json.ts';
import { type SchemaProblem, unchecked } from '../jobs.ts';
import { CodeError } from './engine.ts';
import { type ExactValue, exactValue, isValidExactly, needsExactNumbers, shown, useExactKeywords } from './exact-schema.ts';
import { multiplesOf } from './multiple-of.ts';

/** Under the schemes http and https: authors take either. */
const drafts = {
  'draft-07': { Validator: Ajv, name: '//json-schema.org/draft-07/schema' },
  '2020-12': { Validator: Ajv2020, name: '//json-schema.org/draft/2020-12/schema' },
} as const;
type Draft = keyof typeof drafts;

const patternLength = 1000;
const patternSize = 2000;

/** Patterns run in linear time: those of the schema are as little trusted as the payload. */
function linearPattern(pattern: string): { test(text: string): boolean } {
  if (pattern.length > patternLength) throw new CodeError(`a pattern is longer than ${patternLength} characters`);
  let compiled: RE2JS;
  try {
    compiled = RE2JS.compile(pattern);
  } catch (error) {
    throw new CodeError(`the pattern "${pattern}" is not in RE2 syntax: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (compiled.programSize() > patternSize) throw new CodeError(`the pattern "${pattern}" is too large`);
  return { test: (text) => compiled.test(text) };
}

const options: Options = {
  strict: false,
  inlineRefs: false,
  logger: false,
  code: { regExp: Object.assign(linearPattern, { code: 'linearPattern' }) },
};

/** Replaces the validator's own, which divides doubles: 19.99 would be no multiple of 0.01. */
const multipleOf: FuncKeywordDefinition = {
  keyword: 'multipleOf',
  type: 'number',
  schemaType: 'number',
  compile: multiplesOf,
  error: {
    message: ({ schemaCode }) => str`must be multiple of ${schemaCode}`,
    params: ({ schemaCode }) => _`{multipleOf: ${schemaCode}}`,
  },
};

/** Digits of a second beyond these are ignored: as a double, 59 and many nines would be 60. */
const fractionOfSecond = /(\.\d{6})\d+/;

function readTimesOfAnyPrecision(ajv: Ajv): void {
  for (const name of ['time', 'date-time', 'iso-time', 'iso-date-time']) {
    const format = ajv.formats[name];
    if (typeof format !== 'object' || !('validate' in format) || typeof format.validate !== 'function') continue;
    const isValid = format.validate as (text: string) => boolean;
    ajv.addFormat(name, (text) => isValid(text.replace(fractionOfSecond, '$1')));
  }
}

function plainValue(value: unknown): ExactValue {
  return { plain: value, exact: value, containers: new WeakMap() };
}

const metaValidators = new Map<Draft, Ajv>();
const compiled = new LRUCache<string, ValidateFunction>({ max: 200 });

/**
 * Checks a schema (JSON text) against its draft, 2020-12 or, by `$schema`, 07, and compiles it. References lead into the schema
 * itself. Throws CodeError.
 */
export function checkSchema(schema: string): void {
  const { draft, parsed } = draftOf(schema);
  const meta = metaValidators.get(draft) ?? new drafts[draft].Validator({ strict: false, logger: false });
  metaValidators.set(draft, meta);
  const { $schema: _, ...judged } = parsed;
  if (meta.validateSchema(judged) !== true) {
    const [first] = meta.errors ?? [];
    throw new CodeError(`${first?.instancePath || 'the schema'} ${first === undefined ? 'is no JSON Schema' : wordsOf(first)}`);
  }
  compile(schema, { findsAll: false, isExact: needsExactNumbers(schema) });
}

/** Violations of each schema by a payload (JSON text), at most so many each; an invalid schema is one, too. */
export function validate(schemas: readonly string[], payload: string, maxProblems: number): SchemaProblem[][] {
  let value: ExactValue;
  const isInexact = needsExactNumbers(payload);
  try {
    value = isInexact ? exactValue(payload) : plainValue(parsePlainJson(payload));
  } catch {
    return schemas.map(() => [{ path: '', message: 'is not JSON' }]);
  }
  return schemas.map((schema) => {
    try {
      return problemsOf(schema, value, { isExact: isInexact || needsExactNumbers(schema), maxProblems });
    } catch (error) {
      return [unchecked(error instanceof Error ? error.message : String(error))];
    }
  });
}

interface Checking {
  /** Numbers are read as they are written: some are no doubles. */
  isExact: boolean;
  maxProblems: number;
}

function problemsOf(schema: string, value: ExactValue, { isExact, maxProblems }: Checking): SchemaProblem[] {
  const findsAll = maxProblems > 1;
  const key = `${isExact ? 'exact ' : ''}${findsAll ? 'all' : 'first'} ${schema}`;
  const isValid = compiled.get(key) ?? compile(schema, { findsAll, isExact });
  compiled.set(key, isValid);
  if (isExact ? isValidExactly(isValid, value) : isValid(value.plain)) return [];
  return (isValid.errors ?? []).slice(0, maxProblems).map((error) => ({ path: error.instancePath, message: wordsOf(error) }));
}

/** With the name of a property that is not allowed, and the values that are. */
function wordsOf({ message = 'is not valid', params }: ErrorObject): string {
  if ('additionalProperty' in params) return `${message}: ${String(params['additionalProperty'])}`;
  return 'allowedValues' in params ? `${message}: ${shown(params['allowedValues'])}` : message;
}

function compile(schema: string, { findsAll, isExact }: { findsAll: boolean; isExact: boolean }): ValidateFunction {
  const { draft, parsed, value } = draftOf(schema);
  // A validator of its own: schemas of different users may bear one $id.
  const ajv = new drafts[draft].Validator({ ...options, meta: false, validateSchema: false, allErrors: findsAll });
  addFormats.default(ajv);
  readTimesOfAnyPrecision(ajv);
  ajv.removeKeyword('multipleOf').addKeyword(multipleOf);
  if (isExact) useExactKeywords(ajv, value);
  try {
    return ajv.compile(parsed);
  } catch (error) {
    if (error instanceof CodeError) throw error;
    throw new CodeError(error instanceof Error ? error.message : String(error));
  }
}

function draftOf(schema: string): { draft: Draft; parsed: Record<string, unknown>; value: ExactValue } {
  const value = needsExactNumbers(schema) ? exactValue(schema) : plainValue(parsePlainJson(schema));
  const parsed: Record<string, unknown> = Object(value.plain);
  const { $schema = drafts['2020-12'].name } = parsed;
  const name = typeof $schema === 'string' ? $schema.replace(/#$/, '').replace(/^https?:/, '') : '';
  for (const draft of ['2020-12', 'draft-07'] as const) if (drafts[draft].name === name) return { draft, parsed, value };
  throw new CodeError('$schema must be draft 2020-12 or draft 07');
}
