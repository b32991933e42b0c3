import { numberText, toTimestamp } from './column-timestamp.ts';
import { decimalNumber, doubleOf, ExactNumber, isDouble, isJsonNumber, type JsonNumber } from './exact-number.ts';
import { type JsonPath, readJsonPath } from './json-path.ts';
import type { PathShape } from './json-path-shape.ts';
import { readJson } from './read-json.ts';
import type { ColumnType, FieldMappingRule } from './records.ts';

/** Makes the columns of one record, in the order of the rules and one at a time, from `{id, source, receivedAt, headers, payload}`, with `query` where the event has one. */
export type FieldMapping = (record: unknown) => Iterable<[column: string, value: unknown]>;

interface Column {
  path: JsonPath;
  target: string;
  type: ColumnType;
  /** Default where the path finds nothing. */
  absent: unknown;
}

const headerName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** Input of paths. */
const record: PathShape = {
  type: 'object',
  members: {
    id: { type: 'text' },
    source: { type: 'text' },
    receivedAt: { type: 'text' },
    headers: { type: 'map', of: [{ type: 'text' }], nameProblem: headerNameProblem },
    query: { type: 'map', of: [{ type: 'text' }, { type: 'list', of: { type: 'text' } }] },
    payload: { type: 'any' },
  },
};

function headerNameProblem(name: string): string | null {
  if (!headerName.test(name)) return 'it is no name of a header';
  return name === name.toLowerCase() ? null : `names of headers are in lower case, as ['${name.toLowerCase()}']`;
}

type ReadMapping =
  | { mapping: FieldMapping; problem?: undefined }
  | { mapping?: undefined; problem: { index: number; field: 'source' | 'target' | 'default'; message: string } };

/** Reads the paths once. The problem names the first rule that is not to be kept, counted from 0: a path that can match nothing in any record is one. */
export function readFieldMapping(rules: readonly FieldMappingRule[]): ReadMapping {
  const columns: Column[] = [];
  const targets = new Set<string>();
  for (const [index, { source, target, type, default: fallback }] of rules.entries()) {
    const { query, problem } = readJsonPath(source, record);
    if (problem !== undefined) return { problem: { index, field: 'source', message: `is no JSONPath that can be used: ${problem}` } };
    if (targets.has(target)) return { problem: { index, field: 'target', message: `names the column ${target} a second time` } };
    const absent = fallback === undefined ? null : type === 'json' ? readJson(fallback) : converted(fallback, type);
    if (absent === undefined || (absent === null && fallback !== undefined && type !== 'json'))
      return { problem: { index, field: 'default', message: `is no ${type}` } };
    targets.add(target);
    columns.push({ path: query, target, type, absent });
  }
  return {
    mapping: function* (record) {
      for (const { path, target, type, absent } of columns) yield [target, columnValue(path(record), type, absent)];
    },
  };
}

/** A column of type json holds all that the path finds when it may find several; any other the first. */
function columnValue(found: unknown[], type: ColumnType, absent: unknown): unknown {
  if (found.length === 0) return absent;
  return type === 'json' && found.length > 1 ? found : converted(found[0], type);
}

/** Null for what has no value of the type. */
function converted(value: unknown, type: ColumnType): unknown {
  if (value === null || value === undefined) return null;
  switch (type) {
    case 'string':
      return typeof value === 'string' ? value : JSON.stringify(value);
    case 'number':
      return toNumber(value);
    case 'boolean':
      return toBoolean(value);
    case 'timestamp':
      return toTimestamp(value instanceof ExactNumber ? value.text : value);
    case 'json':
      return value;
    default:
      return type satisfies never;
  }
}

/** A number of JSON, and a text that writes one, keep their digits. */
function toNumber(value: unknown): JsonNumber | null {
  if (typeof value === 'boolean') return value ? 1 : 0;
  if (typeof value === 'string') return numberText.test(value) ? numberOfText(value.trim()) : null;
  return isJsonNumber(value) ? value : null;
}

/** Null when it is larger than all doubles: an id of a few letters may be that by chance, as `12e9999` is. */
function numberOfText(text: string): JsonNumber | null {
  const number = decimalNumber(text);
  if (number === null || !Number.isFinite(doubleOf(number))) return null;
  return isDouble(number) ? doubleOf(number) : number;
}

function toBoolean(value: unknown): boolean | null {
  if (typeof value === 'boolean') return value;
  const text = isJsonNumber(value) ? String(doubleOf(value)) : typeof value === 'string' ? value.trim().toLowerCase() : '';
  if (text === 'true' || text === '1') return true;
  return text === 'false' || text === '0' ? false : null;
}
