import type { JSONPathEnvironment, JSONPathQuery, jsonpath, Token, TokenKind } from 'json-p3';
import { LRUCache } from 'lru-cache';
import { compileCost, patternLimits, re2 } from './bounded-pattern.ts';
import { jsonNumberPattern } from './exact-number.ts';
import { type PathShape, PathShapeCheck } from './json-path-shape.ts';
import { type JsonP3, JsonPathWork, type LinearRegex, pathLimits } from './json-path-work.ts';
import { lazyPackage } from './lazy-package.ts';

const maxPatterns = 200;
const maxSelectors = 8;

/**
 * A path that has been read: gives the values that it finds, in order. A document that is nested too deeply, or too large for the path, has none.
 * Throws WorkExceededError when the path takes too long for the document.
 */
export type JsonPath = (document: unknown) => unknown[];

interface Runtime {
  environment: JSONPathEnvironment;
  work: JsonPathWork;
}

const jsonP3 = lazyPackage<JsonP3>('json-p3');
let loaded: Runtime | null = null;
const patterns = new LRUCache<string, { regex: LinearRegex | null }>({ max: maxPatterns });

function runtime(): Runtime {
  if (loaded !== null) return loaded;
  const environment = new (jsonP3().JSONPathEnvironment)({ maxRecursionDepth: pathLimits.nesting });
  const work = new JsonPathWork(jsonP3(), linearRegex);
  work.register(environment);
  readNumbers(environment);
  loaded = { environment, work };
  return loaded;
}

/** Reads a number of a filter. */
type NumberReader = (stream: { readonly current: Token }) => InstanceType<typeof jsonpath.expressions.NumberLiteral>;

/** Replaces the number syntax of the package, which has `-01` but no `0.5`, with that of RFC 9535. */
function readNumbers(environment: JSONPathEnvironment): void {
  const { JSONPathSyntaxError, TokenKind: kinds, jsonpath: parts } = jsonP3();
  const { parser } = environment as unknown as { parser: { tokenMap: Map<TokenKind, NumberReader> } };
  parser.tokenMap.set(kinds.NUMBER, ({ current }) => {
    if (!jsonNumberPattern.test(current.value)) throw new JSONPathSyntaxError(`invalid number literal '${current.value}'`, current);
    return new parts.expressions.NumberLiteral(current, Number(current.value));
  });
}

/**
 * Reads a JSONPath (RFC 9535); regular expressions run in linear time. Returns what is wrong with one that does not parse, or whose
 * evaluation could take longer than a multiple of the document's size. `shape`: of the documents; a path, or a query in a filter, that can match
 * nothing in them is returned as well.
 */
export function readJsonPath(
  path: string,
  shape?: PathShape,
): { query: JsonPath; problem?: undefined } | { query?: undefined; problem: string } {
  const { environment, work } = runtime();
  let query: JSONPathQuery;
  try {
    query = environment.compile(path);
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
  const check = shape && new PathShapeCheck(jsonP3(), { root: shape, isPattern });
  const problem = costlyPart(path) ?? costlySelectors(query, path) ?? check?.problemOf(query) ?? null;
  if (problem !== null) return { problem };
  work.charge(query);
  return { query: (document) => work.values(query, document as Parameters<JSONPathQuery['query']>[0]) };
}

/** Each of these would multiply the work by the size of the document. */
function costlyPart(path: string): string | null {
  const bare = withoutStrings(path);
  if ((bare.match(/\.\./g) ?? []).length > 1) return 'has more than one descendant segment (..)';
  const inFilters = bare.slice(1).matchAll(/\$((?:\s*\.\s*[^\s.[\]()*,:<>=!&|?]+|\s*\[\s*(?:-?\d+|'')\s*\])*)\s*(\.|\[)?/g);
  for (const [, , rest] of inFilters) if (rest !== undefined) return 'has a query from $ inside a filter that may find more than one value';
  return null;
}

function withoutStrings(path: string): string {
  return path.replaceAll(/'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"/g, "''");
}

/** Selectors of one bracket that find the same nodes multiply them with every segment. */
function costlySelectors({ segments }: JSONPathQuery, path: string): string | null {
  let product = 1;
  for (const { selectors } of segments) {
    const texts = selectors.map((selector) => selector.toString());
    if (new Set(texts).size < texts.length) return 'has a selector twice in one bracket';
    if (texts.filter((text) => !/^(?:['"]|-?\d+$)/.test(text)).length > 1)
      return 'has more than one wildcard, slice or filter in one bracket';
    product *= Math.max(1, texts.length);
  }
  if (product > maxSelectors) return `has brackets whose selectors combine to more than ${maxSelectors}`;
  return hasListInFilter(withoutStrings(path)) ? 'has several selectors in one bracket inside a filter' : null;
}

function hasListInFilter(bare: string): boolean {
  const open: { isBracket: boolean; inFilter: boolean }[] = [];
  let isFilter = false;
  for (const char of bare) {
    const inner = open.at(-1);
    if (char === '[' || char === '(') open.push({ isBracket: char === '[', inFilter: isFilter });
    else if (char === ']' || char === ')') isFilter = open.pop()?.inFilter ?? false;
    else if (char === '?') isFilter = true;
    else if (char === ',' && inner?.isBracket === true) {
      if (inner.inFilter) return true;
      isFilter = false;
    }
  }
  return false;
}

function isPattern(pattern: string): boolean {
  const isSmall = pattern.length <= patternLimits.length && compileCost(pattern) <= patternLimits.compileCost;
  return isSmall && linearRegex(pattern) !== null;
}

/** An I-Regexp (RFC 9485): its dot matches anything but line ends. Null for a pattern that is none. */
function linearRegex(pattern: string): LinearRegex | null {
  const known = patterns.get(pattern);
  if (known !== undefined) return known.regex;
  const regex = compiled(pattern);
  patterns.set(pattern, { regex });
  return regex;
}

/** Null for an invalid pattern, which matches nothing (RFC 9535 section 2.4.6), and for one that is too large. */
function compiled(pattern: string): LinearRegex | null {
  try {
    const regex = re2().RE2JS.compile(pattern.replaceAll(/\\.|\[(?:[^\]\\]|\\.)*\]|\./gu, (part) => (part === '.' ? '[^\\n\\r]' : part)));
    const size = regex.programSize();
    return size > patternLimits.size ? null : { regex, size };
  } catch {
    return null;
  }
}
