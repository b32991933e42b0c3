import { _, type Ajv, type FuncKeywordDefinition, str, type ValidateFunction } from 'ajv';
import type { DataValidationCxt, KeywordErrorCxt } from 'ajv/dist/types/index.js';
import { compareNumbers, ExactNumber, equalNumbers, isContainer, isDouble, type JsonNumber, jsonNumber } from '../../core/exact-number.ts';
import { inexactNumbers } from '../../core/json-numbers.ts';
import { parseJson } from '../../core/read-json.ts';
import { isMultiple } from './multiple-of.ts';

/** A JSON value as the validator takes it, with doubles, beside what was written. */
export interface ExactValue {
  plain: unknown;
  /** The value with `ExactNumber`. */
  exact: unknown;
  /** Objects and lists of `plain` → those of `exact`, where they are not the same. */
  containers: WeakMap<object, object>;
}

/** Whether a JSON text has a number that no double represents. */
export function needsExactNumbers(json: string): boolean {
  const places = inexactNumbers(json);
  for (let i = 0; i < places.length; i += 2) if (!isDouble(jsonNumber(json.slice(places[i], places[i + 1])))) return true;
  return false;
}

/** Throws SyntaxError. */
export function exactValue(json: string): ExactValue {
  const containers = new WeakMap<object, object>();
  const exact = parseJson(json);
  return { plain: plainOf(exact), exact, containers };

  function plainOf(value: unknown): unknown {
    if (value instanceof ExactNumber) return standIn(value);
    if (!isContainer(value)) return value;
    let isSame = true;
    const plainMember = (member: unknown): unknown => {
      const plain = plainOf(member);
      isSame &&= plain === member;
      return plain;
    };
    const plain = Array.isArray(value)
      ? value.map(plainMember)
      : Object.fromEntries(Object.entries(value).map(([name, member]) => [name, plainMember(member)]));
    if (isSame) return value;
    containers.set(plain, value);
    return plain;
  }
}

/** A double that is whole when the number is, and never infinite: the validator itself checks only the kind of a number. */
function standIn(number: ExactNumber): number {
  if (isDouble(number)) return number.double;
  const { digits, exponent } = number.decimal;
  if (exponent < digits.length) return 0.5;
  return Number.isFinite(number.double) ? number.double : Math.sign(number.double) * Number.MAX_VALUE;
}

/** The value that is checked. A check never waits, so that there is one at a time. */
let checked: ExactValue | null = null;

/** Calls a validator that has the keywords of `exactKeywords`. */
export function isValidExactly(validator: ValidateFunction, value: ExactValue): boolean {
  checked = value;
  try {
    return validator(value.plain);
  } finally {
    checked = null;
  }
}

/** Source text where the validator sees `data`. */
function written(data: unknown, { parentData, parentDataProperty }: DataValidationCxt): unknown {
  if (checked === null) return data;
  if (isContainer(data)) return checked.containers.get(data) ?? data;
  if (typeof data !== 'number') return data;
  const parent: unknown = parentData;
  if (!isContainer(parent)) return checked.exact;
  const original = checked.containers.get(parent);
  return original === undefined ? data : Reflect.get(original, parentDataProperty);
}

/** Replaces the keywords that compare the size of numbers, or the equality of values, by such as compare all digits of both. */
export function useExactKeywords(ajv: Ajv, { containers }: ExactValue): void {
  const ofSchema = (keyword: string, parentSchema: object): unknown => Reflect.get(containers.get(parentSchema) ?? parentSchema, keyword);

  const add = (
    keyword: string,
    rest: Partial<FuncKeywordDefinition>,
    judge: (value: unknown, limit: unknown) => boolean,
    message: (limit: string) => string,
  ): void => {
    const definition: FuncKeywordDefinition = {
      keyword,
      ...rest,
      compile: (_schema, parentSchema) => {
        const limit = ofSchema(keyword, parentSchema);
        return (data: unknown, context?: DataValidationCxt) => judge(context === undefined ? data : written(data, context), limit);
      },
      error: {
        message: ({ parentSchema = {} }: KeywordErrorCxt) => str`${message(shown(ofSchema(keyword, parentSchema)))}`,
        params: () => _`{}`,
      },
    };
    ajv.removeKeyword(keyword).addKeyword(definition);
  };

  const numbers = { type: 'number', schemaType: 'number' } as const;
  const order = (keyword: string, sign: string, isMet: (order: number) => boolean): void =>
    add(
      keyword,
      numbers,
      (value, limit) => isMet(compareNumbers(numberOf(value), numberOf(limit))),
      (limit) => `must be ${sign} ${limit}`,
    );
  order('maximum', '<=', (each) => each <= 0);
  order('minimum', '>=', (each) => each >= 0);
  order('exclusiveMaximum', '<', (each) => each < 0);
  order('exclusiveMinimum', '>', (each) => each > 0);
  add(
    'multipleOf',
    numbers,
    (value, divisor) => isMultiple(numberOf(value), numberOf(divisor)),
    (divisor) => `must be multiple of ${divisor}`,
  );
  add('const', {}, isEqual, () => 'must be equal to constant');
  add(
    'enum',
    { schemaType: 'array' },
    (value, allowed) => Array.isArray(allowed) && allowed.some((each) => isEqual(value, each)),
    (allowed) => `must be equal to one of the allowed values${allowed === '' ? '' : `: ${allowed}`}`,
  );
  add(
    'uniqueItems',
    { type: 'array', schemaType: 'boolean' },
    (items, isWanted) => isWanted !== true || !Array.isArray(items) || new Set(items.map(identity)).size === items.length,
    () => 'must NOT have duplicate items',
  );
}

const maxShownValues = 20;
const maxShownCharacters = 300;

/** The limit that a keyword sets, for messages: a number, or the values of a list, as many as are read at a glance. */
export function shown(limit: unknown): string {
  if (Array.isArray(limit)) {
    const all = limit.slice(0, maxShownValues).map(shownValue).join(', ');
    return all.length > maxShownCharacters || limit.length > maxShownValues ? `${all.slice(0, maxShownCharacters)}, …` : all;
  }
  return limit instanceof ExactNumber || typeof limit === 'number' ? String(limit) : '';
}

function shownValue(value: unknown): string {
  if (value instanceof ExactNumber) return String(value);
  return isContainer(value) ? '…' : JSON.stringify(value);
}

function numberOf(value: unknown): JsonNumber {
  return value instanceof ExactNumber ? value : Number(value);
}

/** Whether two JSON values are equal. */
function isEqual(one: unknown, other: unknown): boolean {
  if (one instanceof ExactNumber) return (other instanceof ExactNumber || typeof other === 'number') && equalNumbers(one, other);
  if (other instanceof ExactNumber) return typeof one === 'number' && equalNumbers(one, other);
  if (!isContainer(one) || !isContainer(other)) return one === other;
  if (Array.isArray(one) !== Array.isArray(other)) return false;
  const [members, others] = [Object.entries(one), Object.entries(other)];
  if (members.length !== others.length) return false;
  return members.every(([name, member]) => Object.hasOwn(other, name) && isEqual(member, Reflect.get(other, name)));
}

/** The same text for equal JSON values. */
function identity(value: unknown): string {
  if (value instanceof ExactNumber) {
    if (isDouble(value)) return String(value.double);
    const { isNegative, digits, exponent } = value.decimal;
    return `${isNegative ? '-' : ''}0.${digits}e${exponent}`;
  }
  if (Array.isArray(value)) return `[${value.map(identity).join(',')}]`;
  if (!isContainer(value)) return JSON.stringify(value);
  const members = Object.keys(value).sort();
  return `{${members.map((name) => `${JSON.stringify(name)}:${identity(Reflect.get(value, name))}`).join(',')}}`;
}
