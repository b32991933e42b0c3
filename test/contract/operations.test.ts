import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { families } from '../../src/facade/families/families.ts';
import type { Operation } from '../../src/facade/http/operation.ts';
import { isRecord } from '../../src/resources/field-tree.ts';
import type { Answer } from '../facade/facade-world.ts';
import { assertProperty } from '../support/property.ts';
import { brokenFrom } from './broken-values.ts';
import { differences } from './conformity.ts';
import { type ContractWorld, startContractWorld } from './contract-world.ts';
import type { DescribedOperation } from './described-operations.ts';
import { bodiesOf, valuesOf } from './valid-values.ts';

/** Per property and operation. */
const runs = 15;

let world: ContractWorld;
beforeEach(() => world.endRateWindows());
beforeAll(async () => {
  world = await startContractWorld();
});
afterAll(() => world?.facade.stop());

/** Creates first, so that there is something to change; deletions last. */
const order = ({ method, path }: Operation): number => (method === 'DELETE' ? 3 : method === 'POST' && !path.includes('{') ? 0 : 1);
const operations = families.flatMap((family) => family.operations).sort((one, other) => order(one) - order(other));
const withBody = operations.filter(({ body }) => body !== undefined);
const named = (list: readonly Operation[]) => list.map((operation) => [operation.operationId, operation] as const);

function described({ operationId }: Operation): DescribedOperation {
  const found = world.operations.find(({ id }) => id === operationId);
  if (found === undefined) throw new Error(`the document does not have ${operationId}`);
  return found;
}

function expectAsDescribed(operation: Operation, answer: Answer, sent: unknown): void {
  const found = differences(described(operation), world.schemas, answer);
  if (found.length > 0)
    throw new Error(
      `${found.join('\n')}\nanswer: ${answer.status} ${answer.text.slice(0, 500)}\nsent: ${JSON.stringify(sent)?.slice(0, 1000)}`,
    );
}

/** The path with an id of what is there now, for each number. */
async function existing({ path }: Operation, key: string): Promise<(index?: number) => string> {
  const at = path.indexOf('/{');
  if (at < 0) return () => path;
  const ids = await world.idsIn(path.slice(0, at), key);
  return (index = 0) => path.replace(/\{\w+\}/, ids[index % Math.max(ids.length, 1)] ?? 'none');
}

async function bodiesFor(operation: Operation) {
  const { body: schema, bodyExamples } = described(operation);
  if (schema === null) throw new Error('the document has no body for it');
  const key = await world.newKey();
  return { key, schema, bodies: bodiesOf(schema, bodyExamples, world), path: await existing(operation, key) };
}

test('the document describes every operation that is served', () => {
  expect(world.operations.map(({ id }) => id).sort()).toEqual(operations.map(({ operationId }) => operationId).sort());
});

describe('the example bodies of the document work, each after those that it needs', () => {
  test.each(named(withBody.filter(({ method }) => method !== 'DELETE')))('%s', (id, operation) => {
    const answers = world.examples.get(id) ?? [];
    expect(answers.map(({ status, text }) => (status === operation.answer.status ? status : text))).toEqual(
      answers.map(() => operation.answer.status),
    );
    expect(answers.length).toBeGreaterThan(0);
    for (const answer of answers)
      expect(
        world.schemas.complaints(
          described(operation).answers.get(answer.status)?.content.get('application/json') ?? {},
          answer.body,
          'closed',
        ),
      ).toEqual([]);
  });
});

describe('who may call', () => {
  const keyed = operations.filter(({ signsIn }) => signsIn !== true);
  const keys = { reader: '', writer: '', viewer: '', developer: '', admin: '' };
  beforeAll(async () => {
    keys.reader = await world.facade.addKey('contract', { scopes: ['read'] });
    keys.writer = await world.facade.addKey('contract', { scopes: ['write'] });
    keys.viewer = await world.facade.addKey('contract', { role: 'viewer' });
    keys.developer = await world.facade.addKey('contract', { role: 'developer' });
    keys.admin = await world.newKey();
  });

  test('only the operation that begins a session takes its credential in the body', () => {
    expect(operations.filter((operation) => !keyed.includes(operation)).map(({ operationId }) => operationId)).toEqual(['createSession']);
  });

  test.each(named(keyed))('%s requires a key, its scope and its role', async (_, operation) => {
    const path = `/api${(await existing(operation, world.facade.admin))()}`;
    const refusals = [
      { key: null, status: 401 },
      { key: operation.scope === 'read' ? keys.writer : keys.reader, status: 403 },
      ...(operation.scope === 'read' ? [] : [{ key: keys.viewer, status: 403 }]),
      ...(operation.adminOnly === true ? [{ key: keys.developer, status: 403 }] : []),
    ];
    for (const { key, status } of refusals) {
      const answer = await world.facade.request(operation.method, path, { key });
      expect(answer.status).toBe(status);
      expectAsDescribed(operation, answer, path);
    }
  });

  test.each(named(keyed))("%s is 404 below another organization's path", async (_, operation) => {
    const answer = await world.facade.request(operation.method, `/api/organizations/other${operation.path}`, { key: keys.admin });
    expect(answer.status).toBe(404);
    expectAsDescribed(operation, answer, null);
  });
});

describe('bodies', () => {
  test.each(named(withBody))('%s takes what the document calls valid and answers as described', async (_, operation) => {
    await world.look();
    const { key, schema, bodies, path } = await bodiesFor(operation);
    let accepted = 0;
    const property = fc.asyncProperty(bodies, fc.nat(), async (body, index) => {
      fc.pre(world.schemas.accepts(schema, body));
      const answer = await world.facade.request(operation.method, `/api${path(index)}`, { key, body });
      expectAsDescribed(operation, answer, body);
      expect(['MALFORMED_JSON', 'UNKNOWN_FIELD', 'UNSUPPORTED_MEDIA_TYPE']).not.toContain(answer.headers.get('x-error-code'));
      if (answer.status === operation.answer.status) accepted++;
    });
    // Few values of some bodies fit what is there.
    for (const many of [runs, 10 * runs]) if (accepted === 0) await assertProperty(property, many);
    expect(accepted).toBeGreaterThan(0);
  });

  test.each(named(withBody))('%s refuses what the document does not call valid', async (_, operation) => {
    const { key, schema, bodies, path } = await bodiesFor(operation);
    await assertProperty(
      fc.asyncProperty(brokenFrom(bodies), fc.nat(), async (body, index) => {
        const answer = await world.facade.request(operation.method, `/api${path(index)}`, { key, body });
        expectAsDescribed(operation, answer, body);
        if (!world.schemas.accepts(schema, JSON.parse(JSON.stringify(body)))) expect([answer.status, body]).toEqual([400, body]);
      }),
      2 * runs,
    );
  });

  test.each(named(withBody))('%s refuses what is no JSON object of a sensible size', async (_, operation) => {
    const key = await world.newKey();
    const path = `/api${(await existing(operation, key))()}`;
    for (const { rawBody, type = 'application/json', status } of unreadable) {
      const answer = await world.facade.request(operation.method, path, { key, rawBody, headers: { 'content-type': type } });
      const shown = rawBody.toString('utf8', 0, 40);
      expect([shown, type, answer.status]).toEqual([shown, type, status]);
      expectAsDescribed(operation, answer, shown);
    }
  });
});

describe('what was read is taken back, and changes nothing', () => {
  const changes = operations.filter(({ method, path }) => method === 'PATCH' && path.endsWith('/{id}'));

  test('each kind of record that can be changed can be read', () => {
    const read = operations.filter(({ method }) => method === 'GET').map(({ path }) => path);
    expect(changes.filter(({ path }) => !read.includes(path))).toEqual([]);
    expect(changes.length).toBeGreaterThan(10);
  });

  test.each(named(changes))('%s', async (_, operation) => {
    const key = await world.newKey();
    const ids = await world.idsIn(operation.path.replace('/{id}', ''), key);
    expect(ids.length).toBeGreaterThan(0);
    for (const id of ids.slice(0, 50)) {
      const path = `/api${operation.path.replace('{id}', id)}`;
      const before = recordOf((await world.facade.request('GET', path, { key })).body);
      expect(world.schemas.complaints(described(operation).body ?? {}, before)).toEqual([]);
      const answer = await world.facade.request('PATCH', path, { key, body: before });
      if (answer.status !== operation.answer.status) throw new Error(`${answer.status} ${answer.text} for ${JSON.stringify(before)}`);
      expect(recordOf((await world.facade.request('GET', path, { key })).body)).toEqual(before);
    }
  });
});

describe('queries', () => {
  test.each(named(operations.filter(({ query }) => query !== undefined)))(
    '%s takes valid ones and refuses others',
    async (_, operation) => {
      const [key, { query }] = [await world.newKey(), described(operation)];
      const [values, path] = [valuesOf(query, world), await existing(operation, key)];
      await assertProperty(
        fc.asyncProperty(fc.oneof(values, brokenFrom(values)), fc.nat(), async (given, index) => {
          const sent = isRecord(given)
            ? Object.entries(given).filter(([name]) => operation.query !== undefined && name in operation.query.shape)
            : [];
          const text = new URLSearchParams(
            Object.fromEntries(sent.map(([name, value]) => [name, String(value).slice(0, 4000)])),
          ).toString();
          const answer = await world.facade.request(operation.method, `/api${path(index)}?${text}`, { key });
          expectAsDescribed(operation, answer, text);
          if (answer.status === 400) expect(answer.headers.get('x-error-code')).toBe('INVALID_QUERY');
        }),
        runs,
      );
    },
  );

  test.each(named(operations.filter(({ query }) => query !== undefined)))(
    '%s refuses a name that is none of its own',
    async (_, operation) => {
      const key = await world.newKey();
      const path = `/api${(await existing(operation, key))()}`;
      for (const name of ['enabeld', '__proto__', 'filter[a]', 'ｐage', 'x'.repeat(500)]) {
        const text = new URLSearchParams({ [name]: 'true' }).toString();
        const answer = await world.facade.request(operation.method, `${path}?${text}`, { key });
        expect([name, answer.status, answer.headers.get('x-error-code')]).toEqual([name, 400, 'INVALID_QUERY']);
        expect(answer.text).toContain(name.slice(0, 100));
        expectAsDescribed(operation, answer, text);
      }
      const unhindered = await world.facade.request(operation.method, `${path}?_=1763731200`, { key });
      expect(unhindered.headers.get('x-error-code')).not.toBe('INVALID_QUERY');
    },
  );
});

describe('paths', () => {
  const ids = [
    'none',
    'dst_aaaaaaaaaaaaaaaaaaaaaaaaaa',
    '%2e%2e%2f',
    '%00',
    '%ff',
    '%F0%9F%92%A9',
    "'%20OR%201=1",
    'x'.repeat(3000),
    '__proto__',
    'constructor',
  ];

  let key: string;
  beforeAll(async () => {
    key = await world.newKey();
  });

  test.each(named(operations.filter(({ path }) => path.includes('{'))))('%s with an id of nothing is 404', async (_, operation) => {
    const [body] = described(operation).bodyExamples;
    for (const id of ids) {
      const answer = await world.facade.request(operation.method, `/api${operation.path.replace(/\{\w+\}/, id)}`, { key, body });
      expect([id, answer.status]).toEqual([id, 404]);
      expectAsDescribed(operation, answer, id);
    }
  });

  test.each([...Map.groupBy(operations, ({ path }) => path)])('%s answers other methods by 405 and names its own', async (path, ofPath) => {
    const own = ofPath.map(({ method }) => String(method));
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'].filter((each) => !own.includes(each))) {
      const answer = await world.facade.request(method, `/api${path.replace(/\{\w+\}/, 'any')}`, { key });
      expect([method, answer.status, answer.headers.get('x-error-code')]).toEqual([method, 405, 'METHOD_NOT_ALLOWED']);
      expect(
        answer.headers
          .get('allow')
          ?.split(', ')
          .filter((each) => each !== 'HEAD')
          .sort(),
      ).toEqual([...own].sort());
    }
  });
});

describe('deletions', () => {
  test.each(named(operations.filter(({ method, path }) => method === 'DELETE' && path.includes('{'))))('%s', async (_, operation) => {
    const key = await world.newKey();
    for (let index = 0; index < 3; index++) {
      const path = `/api${(await existing(operation, key))(index)}`;
      expectAsDescribed(operation, await world.facade.request('DELETE', path, { key }), path);
    }
  });
});

/** The record of an answer that may have an envelope. */
function recordOf(body: unknown): unknown {
  if (!isRecord(body)) return body;
  const [only, ...others] = Object.values(body);
  return isRecord(only) && others.length === 0 ? only : body;
}

const unreadableTexts: readonly { text: string; type?: string; status: number }[] = [
  { text: '{"a":', status: 400 },
  { text: '{"a":1}}', status: 400 },
  { text: "{'a':1}", status: 400 },
  { text: '[]', status: 400 },
  { text: 'null', status: 400 },
  { text: '"text"', status: 400 },
  { text: `${'{"a":'.repeat(2000)}1${'}'.repeat(2000)}`, status: 400 },
  { text: `{"name":"${'x'.repeat(11_000_000)}"}`, status: 413 },
  { text: '{}', type: 'text/plain', status: 415 },
  { text: 'a=1', type: 'application/x-www-form-urlencoded', status: 415 },
  { text: '<a/>', type: 'application/xml', status: 415 },
  { text: '{}', type: 'application/json; charset=utf-16', status: 415 },
];
const unreadable = unreadableTexts.map(({ text, ...rest }) => ({ ...rest, rawBody: Buffer.from(text) }));
