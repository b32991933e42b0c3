import type { JSONPathEnvironment, JSONPathNode, JSONPathQuery } from 'json-p3';
import { LRUCache } from 'lru-cache';
import type { RE2JS } from 're2js';
import { patternLimits, re2 } from './bounded-pattern.ts';
import { latePackage } from './late-package.ts';
import { classCost } from './pattern-classes.ts';

const mostNesting = 100;
const mostPatterns = 200;
const mostSelectors = 8;
/** Over all segments of a path. */
const mostNodes = 100_000;

/** A path that has been read: gives the values that it finds, in order. A document that is nested too deeply, or too large for the path, has none. */
export type JsonPath = (document: unknown) => unknown[];

const jsonP3 = latePackage<typeof import('json-p3')>('json-p3');
let environment: JSONPathEnvironment | null = null;
const patterns = new LRUCache<string, { regex: RE2JS | null }>({ max: mostPatterns });

function newEnvironment(): JSONPathEnvironment {
  const { FunctionExpressionType, JSONPathEnvironment } = jsonP3();
  const made = new JSONPathEnvironment({ maxRecursionDepth: mostNesting });
  for (const [name, test] of [
    ['match', (regex: RE2JS, text: string) => regex.matches(text)],
    ['search', (regex: RE2JS, text: string) => regex.matcher(text).find()],
  ] as const) {
    made.functionRegister.set(name, {
      argTypes: [FunctionExpressionType.ValueType, FunctionExpressionType.ValueType],
      returnType: FunctionExpressionType.LogicalType,
      call: (text: unknown, pattern: unknown) => {
        if (typeof text !== 'string' || typeof pattern !== 'string') return false;
        const regex = linearRegex(pattern);
        return regex !== null && test(regex, text);
      },
    });
  }
  return made;
}

/**
 * Reads a JSONPath (RFC 9535); regular expressions run in linear time. Answers what is wrong with one that does not parse, or whose
 * evaluation could take longer than a multiple of the document's size.
 */
export function readJsonPath(path: string): { query: JsonPath; problem?: undefined } | { query?: undefined; problem: string } {
  let query: JSONPathQuery;
  try {
    environment ??= newEnvironment();
    query = environment.compile(path);
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
  const problem = costlyPart(path) ?? costlySelectors(query, path);
  if (problem !== null) return { problem };
  return {
    query: (document) => {
      try {
        return valuesOf(query, document as Parameters<JSONPathQuery['query']>[0]);
      } catch {
        return [];
      }
    },
  };
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
  if (product > mostSelectors) return `has brackets whose selectors combine to more than ${mostSelectors}`;
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

function valuesOf({ segments }: JSONPathQuery, document: JSONPathNode['value']): unknown[] {
  let count = 0;
  const { JSONPathNode } = jsonP3();
  let nodes = [new JSONPathNode(document, [], document)];
  for (const segment of segments) {
    const found: JSONPathNode[] = [];
    for (const node of segment.lazyResolve(nodes)) {
      if (++count > mostNodes) throw new RangeError(`a path finds more than ${mostNodes} nodes`);
      found.push(node);
    }
    nodes = found;
  }
  return nodes.map(({ value }) => value);
}

/** An I-Regexp (RFC 9485): its dot stands for anything but line ends. Null for a pattern that is none. */
function linearRegex(pattern: string): RE2JS | null {
  const known = patterns.get(pattern);
  if (known !== undefined) return known.regex;
  const isTooLarge = pattern.length > patternLimits.length || classCost(pattern) > patternLimits.classCost;
  const regex = isTooLarge ? null : compiled(pattern);
  patterns.set(pattern, { regex });
  return regex;
}

/** Null for an invalid pattern, which matches nothing (RFC 9535 section 2.4.6). */
function compiled(pattern: string): RE2JS | null {
  try {
    return re2().RE2JS.compile(pattern.replaceAll(/\\.|\[(?:[^\]\\]|\\.)*\]|\./gu, (part) => (part === '.' ? '[^\\n\\r]' : part)));
  } catch {
    return null;
  }
}
