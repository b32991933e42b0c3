import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { eventually } from '../../support/eventually.ts';
import type { FacadeWorld } from '../facade-world.ts';

/** Transforms and schemas, and the routes that use them, with any store behind the API. */
export function describeTransforms(start: () => Promise<FacadeWorld>): void {
  let world: FacadeWorld;
  beforeAll(async () => {
    world = await start();
  });
  afterAll(() => world.stop());

  const create = (path: string, body: object) => world.request('POST', `/api/${path}`, { body });
  const change = (path: string, body: object) => world.request('PATCH', `/api/${path}`, { body });
  const read = async (path: string) => (await world.request('GET', `/api/${path}`)).body;

  describe('transforms', () => {
    test('creating answers 201 with the record, jsonata by default, in force', async () => {
      const { status, body, headers } = await create('transforms', { name: 'To chat', code: '{"text": payload.id}' });
      expect(status).toBe(201);
      expect(headers.get('warning')).toBeNull();
      expect(body).toEqual({
        id: expect.stringMatching(/^trf_[a-z2-7]{26}$/),
        organizationId: expect.stringMatching(/^org_/),
        transformType: 'jsonata',
        inputFormat: 'json',
        outputFormat: 'json',
        name: 'To chat',
        slug: 'to-chat',
        description: null,
        type: 'jsonata',
        code: '{"text": payload.id}',
        sharedWith: [],
        sharedFrom: null,
        routeCount: 0,
        createdAt: expect.any(String),
        updatedAt: expect.any(String),
      });
      expect(await read(`transforms/${body.id}`)).toEqual(body);
      expect((await read('transforms?search=chat')).data).toEqual([body]);
      expect((await read('transforms?search=nothing-such')).pagination).toEqual({ total: 0, page: 1, pageSize: 20 });
    });

    test.each([
      [{ code: '{"a": ' }, /^code line 1, column \d+: /],
      [{ type: 'javascript', code: 'function transform(event) {\n  let a = ;\n}' }, /^code line 2, column 11: /],
      [{ type: 'liquid', code: 'a\n{% for %}' }, /^code line 2, column 1: /],
      [{ type: 'javascript', code: 'const handler = (event) => event.payload;' }, /^code neither defines a function "transform"/],
      [{ type: 'javascript', code: 'const transform = { id: 1 };' }, /^code transform is not a function/],
      [{ type: 'javascript', code: 'export default (event) => event.payload;' }, /^code line 1, column \d+: SyntaxError/],
      [{ type: 'python', code: 'x' }, /type/],
      [{ code: '' }, /code/],
      [{}, /code/],
    ])('%j is 400 with the reason and the place', async (fields, message) => {
      const { status, body } = await create('transforms', { name: 'Wrong', ...fields });
      expect(status).toBe(400);
      expect(body).toEqual({ error: 'Bad Request', message: expect.stringMatching(message), code: 'VALIDATION_FAILED' });
    });

    test.each(['const transform = (event) => event.payload;', 'let transform = async ({ payload }) => payload;'])(
      'a function transform may be bound by %s',
      async (code) => {
        expect((await create('transforms', { name: 'Bound', type: 'javascript', code })).status).toBe(201);
      },
    );

    test('a change to code without output is refused', async () => {
      const { body } = await create('transforms', { name: 'Emptied', type: 'javascript', code: '(event) => event.payload' });
      const { status } = await change(`transforms/${body.id}`, { code: 'function handler(event) { return event.payload; }' });
      expect([status, (await read(`transforms/${body.id}`)).code]).toEqual([400, '(event) => event.payload']);
    });

    test('a change is checked with the code or type that stays', async () => {
      const { body } = await create('transforms', { name: 'Changing', code: '{"a": 1}' });
      expect((await change(`transforms/${body.id}`, { type: 'javascript' })).status).toBe(400);
      const changed = await change(`transforms/${body.id}`, { type: 'javascript', code: '({ a: 1 })', description: 'as JavaScript' });
      expect(changed.body).toMatchObject({ type: 'javascript', code: '({ a: 1 })', description: 'as JavaScript' });
      expect((await change(`transforms/${body.id}`, { description: null })).body).toMatchObject({ type: 'javascript', description: null });
    });
  });

  describe('schemas', () => {
    const jsonSchema = { type: 'object', required: ['id'] };

    test('creating answers 201 with the record and version 1', async () => {
      const { status, body } = await create('schemas', { name: 'Order', jsonSchema });
      expect(status).toBe(201);
      expect(body).toMatchObject({
        id: expect.stringMatching(/^sch_/),
        slug: 'order',
        jsonSchema,
        version: 1,
        routeCount: 0,
        description: null,
      });
    });

    test('the schema may be sent as JSON text', async () => {
      for (const mark of ['', '\ufeff']) {
        const { status, body } = await create('schemas', { name: 'As text', jsonSchema: mark + JSON.stringify(jsonSchema) });
        expect(status).toBe(201);
        expect(body.jsonSchema).toEqual(jsonSchema);
      }
    });

    test('the version grows with each change of the schema, and with nothing else', async () => {
      const { body } = await create('schemas', { name: 'Versions', jsonSchema });
      expect((await change(`schemas/${body.id}`, { name: 'Renamed' })).body.version).toBe(1);
      expect((await change(`schemas/${body.id}`, { jsonSchema: { type: 'object' } })).body.version).toBe(2);
      expect((await change(`schemas/${body.id}`, { jsonSchema: { type: 'object' } })).body.version).toBe(2);
      expect((await change(`schemas/${body.id}`, { jsonSchema })).body).toMatchObject({ version: 3, jsonSchema });
    });

    test.each([
      [{ type: 'objekt' }, /^jsonSchema \/type must be/],
      [{ $ref: 'https://example.com/other.json' }, /resolve reference/],
      [{ pattern: '(?=a)' }, /RE2/],
      ['{"type": ', /not JSON/],
      ['\ufeff\ufeff{}', /not JSON/],
      ['[]', /must be a JSON object/],
      [{ description: 'x'.repeat(65_536) }, /65,536 bytes/],
    ])('%j is 400 with the reason', async (wrong, message) => {
      const { status, body } = await create('schemas', { name: 'Wrong', jsonSchema: wrong });
      expect(status).toBe(400);
      expect(body).toEqual({ error: 'Bad Request', message: expect.stringMatching(message), code: 'VALIDATION_FAILED' });
    });
  });

  describe('routes with filter, transform and schema', () => {
    const made: Record<string, { id: string; slug: string; name: string }> = {};
    beforeAll(async () => {
      const bodies: [string, object][] = [
        ['sources', { name: 'shop' }],
        ['destinations', { name: 'target', url: 'https://hooks.example.com/in' }],
        ['filters', { name: 'used filter', conditions: [{ field: 'a', operator: 'exists' }] }],
        ['transforms', { name: 'used transform', code: 'payload' }],
        ['schemas', { name: 'used schema', jsonSchema: {} }],
      ];
      for (const [path, body] of bodies) made[path] = (await create(path, body)).body;
      const references = { filterId: made['filters']?.id, transformId: made['transforms']?.slug, schemaId: made['schemas']?.id };
      const answer = await create('routes', { name: 'with all', sourceId: 'shop', destinationIds: ['target'], ...references });
      expect(answer.status).toBe(201);
      made['routes'] = answer.body;
    });

    test('reads show them expanded', async () => {
      const shown = (path: string) => ({ id: made[path]?.id, name: made[path]?.name });
      expect(await read('routes/with-all')).toMatchObject({
        filterId: made['filters']?.id,
        filter: shown('filters'),
        transformId: made['transforms']?.id,
        transform: shown('transforms'),
        schemaId: made['schemas']?.id,
        schema: shown('schemas'),
      });
    });

    test.each(['filters', 'transforms', 'schemas'])('%s count the routes that use them, and cannot be deleted before', async (path) => {
      await eventually(async () => expect((await read(`${path}/${made[path]?.id}`)).routeCount).toBe(1));
      const { status, body } = await world.request('DELETE', `/api/${path}/${made[path]?.id}`);
      expect(status).toBe(409);
      expect(body).toMatchObject({ error: 'Conflict', code: 'IN_USE', message: expect.stringContaining('with-all') });
    });

    test('null removes them, and then they can be deleted', async () => {
      const { body } = await change('routes/with-all', { filterId: null, transformId: null, schemaId: null });
      expect(body).toMatchObject({ filterId: null, filter: null, transformId: null, transform: null, schemaId: null, schema: null });
      for (const path of ['filters', 'transforms', 'schemas'])
        expect((await world.request('DELETE', `/api/${path}/${made[path]?.id}`)).status).toBe(204);
    });

    test.each(['transformId', 'schemaId'])('an unknown %s is 400', async (field) => {
      const { status, body } = await change('routes/with-all', { [field]: 'nothing-such' });
      expect(status).toBe(400);
      expect(body).toMatchObject({ code: 'VALIDATION_FAILED', message: expect.stringContaining('nothing-such') });
    });
  });

  describe('as custom resources', () => {
    const condition = async (kind: 'Transform' | 'PayloadSchema' | 'Route', name: string, type: string) => {
      const { status, metadata } = await world.store.get(kind, { namespace: 'acme', name });
      const found = status?.conditions?.find((each) => each.type === type);
      return found?.observedGeneration === metadata.generation ? found : undefined;
    };
    const apply = (kind: 'Transform' | 'PayloadSchema' | 'Route', name: string, spec: object) =>
      world.store.apply({ kind, metadata: { name, namespace: 'acme' }, spec }, { manager: 'kubectl', force: true });

    test('code that does not parse is not accepted, with the reason', async () => {
      await apply('Transform', 'broken', { code: '{"a": ' });
      await apply('Transform', 'no-output', { type: 'javascript', code: 'const handler = (event) => event.payload;' });
      await apply('PayloadSchema', 'broken', { jsonSchema: { type: 'objekt' } });
      await apply('PayloadSchema', 'large', { jsonSchema: { description: 'x'.repeat(65_536) } });
      await eventually(async () => {
        expect(await condition('Transform', 'broken', 'Accepted')).toMatchObject({
          status: 'False',
          reason: 'InvalidTransform',
          message: expect.stringContaining('line 1'),
        });
        expect(await condition('Transform', 'no-output', 'Accepted')).toMatchObject({
          status: 'False',
          reason: 'InvalidTransform',
          message: 'the code neither defines a function "transform" nor has a value',
        });
        expect(await condition('PayloadSchema', 'broken', 'Accepted')).toMatchObject({ status: 'False', reason: 'InvalidSchema' });
        expect(await condition('PayloadSchema', 'large', 'Accepted')).toMatchObject({ status: 'False', reason: 'SchemaTooLarge' });
      });
    });

    test('a route waits for its transform and schema, and takes them up when they come', async () => {
      await create('sources', { name: 'waiting' });
      await create('destinations', { name: 'waiting', url: 'https://hooks.example.com/in' });
      const spec = { sourceRef: { name: 'waiting' }, destinationRefs: [{ name: 'waiting' }] };
      await apply('Route', 'waiting', { ...spec, transformRef: { name: 'later' }, schemaRef: { name: 'later' } });
      await eventually(async () =>
        expect(await condition('Route', 'waiting', 'ResolvedRefs')).toMatchObject({ status: 'False', reason: 'TransformNotFound' }),
      );
      await apply('Transform', 'later', { code: '(' });
      await eventually(async () =>
        expect(await condition('Route', 'waiting', 'ResolvedRefs')).toMatchObject({ status: 'False', reason: 'TransformNotAccepted' }),
      );
      await apply('Transform', 'later', { code: 'payload' });
      await eventually(async () =>
        expect(await condition('Route', 'waiting', 'ResolvedRefs')).toMatchObject({ status: 'False', reason: 'PayloadSchemaNotFound' }),
      );
      await apply('PayloadSchema', 'later', { jsonSchema: {} });
      await eventually(async () => expect(await condition('Route', 'waiting', 'Ready')).toMatchObject({ status: 'True' }));
    });
  });
}
