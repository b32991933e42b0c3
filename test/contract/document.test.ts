import { describe, expect, test } from '@jest/globals';
import { families } from '../../src/facade/families/families.ts';
import { openApiDocument } from '../../src/facade/openapi/openapi.ts';
import { describedOperations, members, type Schema, withReferents } from './described-operations.ts';
import { DocumentSchemas } from './document-schemas.ts';

const document: Schema = JSON.parse(JSON.stringify(await openApiDocument(families, '1.2.3')));
const schemas = new DocumentSchemas(document);
const { paths } = withReferents(document);
const operations = describedOperations(document).map(({ id, method, path }) => ({
  id,
  method,
  operation: members(members(members(paths)[path])[method.toLowerCase()]),
}));

/** Every media type in the request and the answers of an operation, by its path. */
function mediaOf(operation: Schema): [string, Schema][] {
  const request = Object.values(members(members(operation['requestBody'])['content'])).map((media): [string, Schema] => [
    'request',
    members(media),
  ]);
  const answers = Object.entries(members(operation['responses'])).flatMap(([status, answer]) =>
    Object.values(members(members(answer)['content'])).map((media): [string, Schema] => [status, members(media)]),
  );
  return [...request, ...answers];
}

test('what else the process has to do gets its turn while the document is made', async () => {
  let turns = 0;
  const count = (): void => {
    turns++;
    next = setImmediate(count);
  };
  let next = setImmediate(count);
  await openApiDocument(families, '1.2.3');
  clearImmediate(next);
  expect(turns).toBeGreaterThanOrEqual(operations.length);
});

describe('the OpenAPI document', () => {
  test('the OpenAPI document names itself, its servers, its families and the ways to send credentials', () => {
    expect(document).toMatchObject({
      openapi: '3.1.0',
      info: { title: 'Posthorn', version: '1.2.3' },
      servers: [{ url: '/api' }, { url: '/api/organizations/{orgId}' }],
      security: [{ bearer: [] }, { apiKey: [] }, { session: [] }],
      tags: [...families.map(({ name }) => name), 'Payloads', 'Ingest'].map((name) => ({ name, description: expect.stringMatching(/\w/) })),
      components: {
        securitySchemes: {
          bearer: { type: 'http', scheme: 'bearer' },
          apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key' },
          session: { type: 'apiKey', in: 'cookie' },
        },
      },
    });
  });

  test('the OpenAPI document says of each deletion with If-Match that its record may have changed, or may keep changing', () => {
    const deletions = operations.filter(
      ({ method, operation }) => method === 'DELETE' && JSON.stringify(operation['parameters'] ?? []).includes('"If-Match"'),
    );
    expect(deletions.length).toBeGreaterThan(10);
    for (const { id, operation } of deletions) {
      const responses = members(operation['responses']);
      const codes = [409, 412].map((status) => members(responses[status])['description']);
      expect([id, ...codes]).toEqual([id, expect.stringMatching(/\bCONFLICT\b/), expect.stringContaining('PRECONDITION_FAILED')]);
    }
  });

  test('the OpenAPI document gives each operation an id of its own and a summary', () => {
    expect(new Set(operations.map(({ id }) => id)).size).toBe(operations.length);
    for (const { operation } of operations) expect(operation['summary']).toMatch(/\w/);
  });

  test.each(operations.map(({ id, operation }) => [id, operation] as const))(
    'has an example of each body of %s, and each fits its schema',
    (_, operation) => {
      for (const [where, media] of mediaOf(operation)) {
        const examples = schemas.examplesOf(media);
        expect([where, examples.length]).not.toEqual([where, 0]);
        for (const example of examples) expect([where, schemas.complaints(members(media['schema']), example)]).toEqual([where, []]);
      }
    },
  );

  test.each(operations.map(({ id, operation }) => [id, operation] as const))(
    'tells every error of %s with its code and headers',
    (_, operation) => {
      const answers = members(operation['responses']);
      const hasBody = operation['requestBody'] !== undefined;
      for (const status of ['404', ...(hasBody ? ['400'] : []), 'default']) {
        const answer = members(answers[status]);
        const [, media = {}] = mediaOf({ responses: { [status]: answer } })[0] ?? [];
        const codes = Object.entries(members(media['examples']));
        expect(codes.length).toBeGreaterThan(0);
        for (const [code, example] of codes) {
          const { value } = members(example);
          expect(value).toMatchObject({ error: expect.stringMatching(/\w/) });
          if (Object.hasOwn(members(value), 'code')) expect(value).toMatchObject({ code });
        }
        expect(Object.keys(members(answer['headers']))).toContain('X-Error-Code');
      }
      for (const code of ['UNAUTHORIZED', 'FORBIDDEN', 'RATE_LIMITED', 'METHOD_NOT_ALLOWED', 'INTERNAL', 'UNAVAILABLE'])
        expect(members(answers['default'])['description']).toContain(code);
      if (answers['429'] !== undefined) expect(members(answers['429'])['headers']).toHaveProperty('Retry-After');
      expect(members(answers['default'])['headers']).toHaveProperty('Retry-After');
      expect(members(answers['default'])['headers']).toHaveProperty('Allow');
    },
  );
});
