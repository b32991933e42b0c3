import fc from 'fast-check';
import { isRecord } from '../../src/resources/field-tree.ts';

const wrong: readonly unknown[] = [
  null,
  true,
  0,
  -1,
  1.5,
  1e308,
  Number.MAX_SAFE_INTEGER + 1,
  '',
  ' ',
  '\u0000',
  '\ud800',
  '‮ｕｎｉ\u{1f4a9}',
  'x'.repeat(70_000),
  '../../etc/passwd',
  '{{constructor.constructor}}',
  [],
  [[]],
  {},
  { a: { b: {} } },
  JSON.parse('{"__proto__":{"a":1}}'),
  nested(40),
];
const unknownFields: readonly string[] = [
  'nmae',
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'hasOwnProperty',
  '$ref',
  'a.b',
  '',
  'x'.repeat(300),
];

/** The value with one thing in it replaced, removed or added; a validator decides whether that breaks a schema. */
export function brokenFrom(values: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  const change = fc.oneof(
    fc.record({ kind: fc.constant('replace' as const), value: fc.oneof(fc.constantFrom(...wrong), fc.jsonValue({ maxDepth: 1 })) }),
    fc.record({ kind: fc.constant('remove' as const), value: fc.constant(null) }),
    fc.record({ kind: fc.constantFrom(...unknownFields), value: fc.constantFrom<unknown>(1, 'a', null, { a: 1 }) }),
  );
  return fc.tuple(values, fc.nat(), change).map(([value, index, { kind, value: other }]) => {
    const copy: unknown = structuredClone(value);
    const places = placesIn(copy);
    if (kind === 'replace' || kind === 'remove') {
      const place = places[index % Math.max(places.length, 1)];
      if (place === undefined) return kind === 'remove' ? {} : { unexpected: other };
      if (kind === 'remove') place.remove();
      else place.set(other);
      return copy;
    }
    const owners = [copy, ...places.map((place) => place.value)].filter(isRecord);
    const owner = owners[index % Math.max(owners.length, 1)];
    if (owner === undefined) return { [kind]: other };
    Object.defineProperty(owner, kind, { value: other, enumerable: true, configurable: true, writable: true });
    return copy;
  });
}

interface Place {
  value: unknown;
  set(value: unknown): void;
  remove(): void;
}

function placesIn(value: unknown): Place[] {
  if (Array.isArray(value)) {
    return value.flatMap((item, index) => [
      { value: item, set: (other) => void value.splice(index, 1, other), remove: () => void value.splice(index, 1) },
      ...placesIn(item),
    ]);
  }
  if (!isRecord(value)) return [];
  return Object.entries(value).flatMap(([name, member]) => [
    { value: member, set: (other) => void Reflect.set(value, name, other), remove: () => void Reflect.deleteProperty(value, name) },
    ...placesIn(member),
  ]);
}

function nested(depth: number): object {
  return depth === 0 ? {} : { a: nested(depth - 1) };
}
