import { describe, expect, test } from '@jest/globals';
import { z } from 'zod';
import { wording } from '../../resources/complaints.ts';
import { plainIssues } from '../../resources/plain-issues.ts';
import { families } from '../families/families.ts';
import { parseQuery } from './query.ts';

interface Place {
  path: readonly (string | number)[];
  schema: z.ZodNumber;
}

/** Where the schema takes a number. */
function* numbersIn(schema: z.core.$ZodType, path: readonly (string | number)[] = []): Generator<Place> {
  if (schema instanceof z.ZodNumber) yield { path, schema };
  else if ('innerType' in schema._zod.def) yield* numbersIn(schema._zod.def.innerType as z.core.$ZodType, path);
  else if (schema instanceof z.ZodPipe) yield* numbersIn(schema.in, path);
  else if (schema instanceof z.ZodUnion) for (const option of schema.options) yield* numbersIn(option, path);
  else if (schema instanceof z.ZodArray) yield* numbersIn(schema.element, [...path, 0]);
  else if (schema instanceof z.ZodRecord) yield* numbersIn(schema.valueType, [...path, 'key']);
  else if (schema instanceof z.ZodObject)
    for (const [name, field] of Object.entries<z.core.$ZodType>(schema.shape)) yield* numbersIn(field, [...path, name]);
}

function holding(value: unknown, path: readonly (string | number)[]): unknown {
  return path.reduceRight<unknown>((inner, part) => (typeof part === 'number' ? [inner] : { [part]: inner }), value);
}

const operations = families.flatMap((family) => family.operations);
const bounded = operations.flatMap(({ operationId, body }) =>
  body === undefined
    ? []
    : [...numbersIn(body)]
        .filter(({ schema }) => Number.isFinite(schema.maxValue))
        .map(({ path, schema }): [string, z.ZodType, Place] => [`${operationId} ${path.join('.')}`, body, { path, schema }]),
);

describe('a number far out of range is told the bound of its field', () => {
  test('there are fields of both families', () => {
    const names = bounded.map(([name]) => name);
    expect(names).toEqual(
      expect.arrayContaining([
        'createDestination timeoutMs',
        'createRoute priority',
        'createCronJob timeoutMs',
        'createWebhookEndpoint timeoutSeconds',
      ]),
    );
  });

  test.each(bounded)('%s', (_, body, { path, schema }) => {
    for (const value of [1e30, 1e308, Number.POSITIVE_INFINITY, -1e30, Number.NEGATIVE_INFINITY]) {
      const { error } = body.safeParse(holding(value, path), { error: wording });
      const issue = plainIssues(error?.issues ?? []).find((each) => each.path.join() === path.join());
      expect([value, issue?.message]).toEqual([
        value,
        value > 0 ? `must be at most ${schema.maxValue}` : `must be at least ${schema.minValue}`,
      ]);
    }
  });
});

describe('a query value far out of range is told the bound of its parameter', () => {
  const parameters = operations.flatMap(({ operationId, query }) =>
    Object.entries(query?.shape ?? {}).flatMap(([name, schema]) => {
      const shown = z.toJSONSchema(schema, { io: 'output' });
      return shown.type === 'integer' ? [[`${operationId} ${name}`, query, name, shown.minimum, shown.maximum] as const] : [];
    }),
  );

  test('there are parameters of both families', () => {
    expect(parameters.map(([title]) => title)).toEqual(
      expect.arrayContaining(['listDestinations pageSize', 'listOutboundMessages limit', 'exportOutboundMessages limit']),
    );
  });

  test.each(parameters)('%s', (_, query, name, minimum, maximum) => {
    for (const [value, says] of [
      ['10000000000', `must be at most ${maximum}`],
      ['9'.repeat(400), `must be at most ${maximum}`],
      ['1e30', `must be at most ${maximum}`],
      [String((minimum ?? 1) - 1), `must be at least ${minimum}`],
      ['-5', `must be at least ${minimum}`],
      ['-1e30', `must be at least ${minimum}`],
      ['1e1', 'must be a whole number'],
      ['1.5', 'must be a whole number'],
      ['', 'must be a whole number'],
      ['0x10', 'must be a whole number'],
    ])
      expect(() => parseQuery(query, { [name]: value })).toThrow(`Query: ${name} ${says}.`);
  });
});
