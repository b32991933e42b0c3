import type { CelFunc, CelList, CelValue } from '@bufbuild/cel';
import { includesText, searchNs } from './text-search.ts';

export type CelPackage = typeof import('@bufbuild/cel');

/** Nanoseconds that an evaluation takes at worst, measured. */
export const celCosts = {
  call: 150,
  /** One is made, and joined with others where `||` or `&&` passes it on. */
  error: 4000,
  /** A part of an expression, for each element of a comprehension. */
  part: 350,
  listItem: 300,
  /** A list or map that is compared. */
  container: 2000,
  /** An entry of a map that is compared with another one. */
  mapEntry: 600,
  /** An element of a list that is joined with another one. */
  joinedItem: 5,
  timestamp: 15_000,
  duration: 20_000,
  /** A part of a time by the clocks of a zone. */
  zoneTime: 500_000,
};

/** Replacements of the CEL functions that are slower than necessary. */
export function quickFunctions({ celFunc, celList, celMethod, listType, CelScalar }: CelPackage): CelFunc[] {
  const { BOOL, DOUBLE, DYN, INT, STRING, UINT } = CelScalar;
  const list = listType(DYN);
  return [
    // The package's own make a double of the integer.
    ...Object.entries(orders).flatMap(([name, isMet]) => [
      celFunc(name, [INT, DOUBLE], BOOL, (one, other) => isMet(one, other)),
      celFunc(name, [DOUBLE, INT], BOOL, (one, other) => isMet(one, other)),
      celFunc(name, [UINT, DOUBLE], BOOL, (one, other) => isMet(one.value, other)),
      celFunc(name, [DOUBLE, UINT], BOOL, (one, other) => isMet(one, other.value)),
    ]),
    celFunc('_+_', [list, list], list, (one, other) => {
      const items = itemsOf(one).concat(itemsOf(other));
      const both = celList(items);
      joinedItems.set(both, items);
      return both;
    }),
    celFunc('size', [STRING], INT, (text) => BigInt(codePoints(text))),
    celMethod('size', STRING, [], INT, function () {
      return BigInt(codePoints(this));
    }),
    celMethod('contains', STRING, [STRING], BOOL, function (part) {
      return includesText(this, part);
    }),
  ];
}

type AnyNumber = number | bigint;

const orders: Readonly<Record<string, (one: AnyNumber, other: AnyNumber) => boolean>> = {
  '_<_': (one, other) => one < other,
  '_<=_': (one, other) => one <= other,
  '_>_': (one, other) => one > other,
  '_>=_': (one, other) => one >= other,
};

/** Elements of lists that were joined: `map` and `filter` join as often as there are elements, and going through a list takes long. */
const joinedItems = new WeakMap<CelList, CelValue[]>();

function itemsOf(list: CelList): CelValue[] {
  return joinedItems.get(list) ?? [...list];
}

function codePoints(text: string): number {
  let count = text.length;
  for (let i = 1; i < text.length; i++) if (isLow(text.charCodeAt(i)) && isHigh(text.charCodeAt(i - 1))) count--;
  return count;
}

function isHigh(unit: number): boolean {
  return unit >= 0xd800 && unit < 0xdc00;
}

function isLow(unit: number): boolean {
  return unit >= 0xdc00 && unit < 0xe000;
}

/** The same functions, which spend what a call costs before it is made; `spend` throws what ends the evaluation. */
export function chargedFunctions(cel: CelPackage, functions: Iterable<CelFunc>, spend: (name: string, ns: number) => void): CelFunc[] {
  const overloads = Map.groupBy(functions, ({ name }) => name);
  return [...overloads].flatMap(([name, group]) => {
    const cost = costOf(cel, name, (ns) => spend(name, ns));
    return group.map((func, i) => charged(func, name, i === 0 ? cost : null, i === group.length - 1));
  });

  /** Overloads are tried in order; `cost`: of the first one alone. */
  function charged(func: CelFunc, name: string, cost: Cost | null, isLast: boolean): CelFunc {
    const call: CelFunc['call'] = (id, target, args) => {
      if (cost !== null) spend(name, celCosts.call + (target === undefined ? cost(args[0], args[1]) : cost(target, args[0])));
      const result = func.call(id, target, args);
      if (result === undefined ? isLast : cel.isCelError(result)) spend(name, celCosts.error);
      return result;
    };
    return Object.assign(Object.create(Object.getPrototypeOf(func)), func, { call });
  }
}

/** Cost of a call beside `celCosts.call`, in nanoseconds, by its target and arguments. */
type Cost = (first: CelValue | undefined, second: CelValue | undefined) => number;

function costOf(cel: CelPackage, name: string, spend: (ns: number) => void): Cost {
  switch (name) {
    case '_==_':
    case '_!=_':
      // Where they are not alike, that is seen at once; where they are, no more is compared than there is in one of them.
      return (first, second) =>
        typeof first !== 'object' || typeof second !== 'object'
          ? Math.min(lengthOf(first), lengthOf(second))
          : sizeOf(cel, first) === sizeOf(cel, second)
            ? weightOf(cel, first, spend)
            : 0;
    case '@in':
      return (first, second) =>
        cel.isCelList(second) ? second.size * celCosts.listItem + second.size * weightOf(cel, first, spend) : lengthOf(first);
    case 'size':
      return (first) => 8 * lengthOf(first);
    case '_+_':
      return (first, second) =>
        cel.isCelList(first) && cel.isCelList(second)
          ? (first.size + second.size) * celCosts.joinedItem
          : lengthOf(first) + lengthOf(second);
    case 'contains':
      return (first, second) => (typeof first === 'string' && typeof second === 'string' ? searchNs(first, second) : 0);
    case 'int':
    case 'uint':
      // Each digit of a number with very many takes time in proportion to how many there are.
      return (first) => lengthOf(first) * Math.min(150, 10 + lengthOf(first) / 100);
    case 'timestamp':
      return (first) => celCosts.timestamp + lengthOf(first);
    case 'duration':
      return () => celCosts.duration;
    default:
      if (name.startsWith('get')) return (_first, second) => (second === undefined ? celCosts.timestamp : celCosts.zoneTime);
      return (first, second) => 2 * (lengthOf(first) + lengthOf(second));
  }
}

/** Returns the length of a text or bytes; 0 for anything else. */
function lengthOf(value: CelValue | undefined): number {
  return typeof value === 'string' || value instanceof Uint8Array ? value.length : 0;
}

/** Returns the size of a list, map or bytes; undefined for anything else. */
function sizeOf(cel: CelPackage, value: CelValue | undefined): number | undefined {
  if (value instanceof Uint8Array) return value.length;
  return cel.isCelList(value) || cel.isCelMap(value) ? value.size : undefined;
}

/** Cost of visiting all of a value, in nanoseconds; spends as much for finding out. */
function weightOf(cel: CelPackage, value: CelValue | undefined, spend: (ns: number) => void): number {
  if (typeof value !== 'object') return lengthOf(value);
  const isList = cel.isCelList(value);
  if (!isList && !cel.isCelMap(value)) return lengthOf(value);
  const own = celCosts.container + value.size * (isList ? celCosts.listItem : celCosts.mapEntry);
  spend(own);
  let weight = own;
  if (isList) for (const item of value) weight += weightOf(cel, item, spend);
  else for (const [key, item] of value) weight += lengthOf(String(key)) + weightOf(cel, item, spend);
  return weight;
}
