import { FunctionExpressionType, JSONPathEnvironment, type JSONPathQuery } from 'json-p3';
import { LRUCache } from 'lru-cache';
import { RE2JS } from 're2js';

const mostNesting = 100;
const mostPatterns = 200;
const longestPattern = 1000;

/** A path that has been read: gives the values that it finds, in order. A document that is nested too deeply has none. */
export type JsonPath = (document: unknown) => unknown[];

const environment = new JSONPathEnvironment({ maxRecursionDepth: mostNesting });
const patterns = new LRUCache<string, { regex: RE2JS | null }>({ max: mostPatterns });

for (const [name, test] of [
  ['match', (regex: RE2JS, text: string) => regex.matches(text)],
  ['search', (regex: RE2JS, text: string) => regex.matcher(text).find()],
] as const) {
  environment.functionRegister.set(name, {
    argTypes: [FunctionExpressionType.ValueType, FunctionExpressionType.ValueType],
    returnType: FunctionExpressionType.LogicalType,
    call: (text: unknown, pattern: unknown) => {
      if (typeof text !== 'string' || typeof pattern !== 'string') return false;
      const regex = linearRegex(pattern);
      return regex !== null && test(regex, text);
    },
  });
}

/**
 * Reads a JSONPath (RFC 9535); regular expressions run in linear time. Answers what is wrong with one that does not parse, or whose
 * evaluation could take longer than a multiple of the document's size.
 */
export function readJsonPath(path: string): { query: JsonPath; problem?: undefined } | { query?: undefined; problem: string } {
  let query: JSONPathQuery;
  try {
    query = environment.compile(path);
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
  const problem = costlyPart(path);
  if (problem !== null) return { problem };
  return {
    query: (document) => {
      try {
        return query.query(document as Parameters<JSONPathQuery['query']>[0]).values();
      } catch {
        return [];
      }
    },
  };
}

/** Each of these would multiply the work by the size of the document. */
function costlyPart(path: string): string | null {
  const bare = path.replaceAll(/'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"/g, "''");
  if ((bare.match(/\.\./g) ?? []).length > 1) return 'has more than one descendant segment (..)';
  const inFilters = bare.slice(1).matchAll(/\$((?:\s*\.\s*[^\s.[\]()*,:<>=!&|?]+|\s*\[\s*(?:-?\d+|'')\s*\])*)\s*(\.|\[)?/g);
  for (const [, , rest] of inFilters) if (rest !== undefined) return 'has a query from $ inside a filter that may find more than one value';
  return null;
}

/** An I-Regexp (RFC 9485): its dot stands for anything but line ends. Null for a pattern that is none. */
function linearRegex(pattern: string): RE2JS | null {
  const known = patterns.get(pattern);
  if (known !== undefined) return known.regex;
  let regex: RE2JS | null = null;
  try {
    const dotted = pattern.replaceAll(/\\.|\[(?:[^\]\\]|\\.)*\]|\./gu, (part) => (part === '.' ? '[^\\n\\r]' : part));
    regex = pattern.length > longestPattern ? null : RE2JS.compile(dotted);
  } catch {
    // an invalid pattern matches nothing (RFC 9535 section 2.4.6)
  }
  patterns.set(pattern, { regex });
  return regex;
}
