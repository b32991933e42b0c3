import { afterAll, beforeAll, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { parseManifests } from '../../../src/runtime/manifests/parse.ts';
import { eventually } from '../../support/eventually.ts';
import type { FacadeWorld } from '../facade-world.ts';

// biome-ignore lint/suspicious/noExplicitAny: parts of a JSON document
const apart = ({ exportedAt, organizationSlug, ...rest }: any) => rest;

const text = (minLength: number, maxLength: number) => fc.string({ unit: 'grapheme', minLength, maxLength: Math.min(maxLength, 60) });
const name = text(1, 60).map((value) => `${value}.`.normalize());
const headerName = fc.stringMatching(/^X-[!#$%&'*+.^_`|~0-9A-Za-z-]{1,20}$/);
const headerValue = fc.string({ unit: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCodePoint(code)), maxLength: 40 });
const sendable = fc.stringMatching(/^[\t\x20-\x7e\x80-\xff]{1,60}$/);
const optional = { requiredKeys: [] as [] };

const auth = fc.oneof(
  fc.constant({}),
  fc.record({
    authType: fc.constant('basic'),
    authConfig: fc.record({ username: fc.stringMatching(/^[^:\p{Cc}]{1,20}$/u), password: text(1, 60) }),
  }),
  fc.record({ authType: fc.constant('bearer'), authConfig: fc.record({ token: sendable }) }),
  fc.record({ authType: fc.constant('api_key'), authConfig: fc.record({ headerName, key: sendable }) }),
  fc.record({ authType: fc.constant('custom_header'), authConfig: fc.record({ headerName, headerValue: sendable }) }),
);
const throttle = fc.oneof(
  fc.record({ mode: fc.constant('off') }),
  fc.record({
    mode: fc.constant('rate'),
    rateLimit: fc.integer({ min: 1, max: 1e6 }),
    rateUnit: fc.constantFrom('second', 'minute', 'hour'),
  }),
  fc.record({
    mode: fc.constant('concurrency'),
    maxConcurrency: fc.integer({ min: 1, max: 10_000 }),
    queueLimit: fc.integer({ min: 1, max: 1e7 }),
  }),
);
const destination = fc
  .tuple(
    fc.record(
      {
        description: text(0, 60),
        enabled: fc.boolean(),
        useStaticIp: fc.boolean(),
        forwardQuery: fc.boolean(),
        ordered: fc.boolean(),
        payloadForm: fc.constantFrom('full', 'thin'),
        forwardHeaders: fc.option(
          fc.uniqueArray(fc.stringMatching(/^X-A[a-z]{0,20}$/), { selector: (name) => name.toLowerCase(), maxLength: 4 }),
        ),
        method: fc.constantFrom('POST', 'PUT', 'PATCH'),
        headers: fc
          .uniqueArray(fc.tuple(headerName, headerValue), { selector: ([header]) => header.toLowerCase(), maxLength: 4 })
          .map((entries) => Object.fromEntries(entries)),
        headerTemplates: fc.option(
          fc.dictionary(fc.stringMatching(/^x-t[a-z]{0,8}$/), fc.constantFrom('{{ event.id }}', 'a { {{payload.a[0]}} }}'), { maxKeys: 4 }),
        ),
        timeoutMs: fc.integer({ min: 100, max: 60_000 }),
        throttle,
        retryPolicy: fc.record(
          {
            maxRetries: fc.integer({ min: 0, max: 25 }),
            backoffMultiplier: fc.double({ min: 1, max: 10, noNaN: true }),
            delays: fc.option(fc.array(fc.integer({ min: 100, max: 86_400_000 }), { minLength: 1, maxLength: 25 })),
          },
          optional,
        ),
        signingSecret: fc.uint8Array({ minLength: 24, maxLength: 64 }).map((bytes) => `whsec_${Buffer.from(bytes).toString('base64')}`),
      },
      optional,
    ),
    auth,
    name,
  )
  .map(([fields, credentials, given]) => ({ ...fields, ...credentials, name: given, url: 'https://hooks.example.com/in' }));

const condition = fc.oneof(
  fc.record({ field: fc.constantFrom('payload.a.b', 'headers.X-A', 'c'), operator: fc.constantFrom('exists', 'not_exists') }),
  fc.record({
    field: fc.constantFrom('payload.a.b', 'headers.X-A', 'c'),
    operator: fc.constantFrom('equals', 'not_equals'),
    value: fc.oneof(text(0, 40), fc.integer(), fc.boolean(), fc.constant(null)),
  }),
  fc.record({
    field: fc.constant('d'),
    operator: fc.constantFrom('in', 'not_in'),
    value: fc.array(fc.oneof(text(0, 20), fc.integer()), { maxLength: 4 }),
  }),
);
const inlineFilter = fc.record(
  { filterConditions: fc.array(condition, { minLength: 1, maxLength: 4 }), filterLogic: fc.constantFrom('AND', 'OR') },
  { requiredKeys: ['filterConditions'] },
);
const routeFields = fc.record(
  {
    description: text(0, 60),
    enabled: fc.boolean(),
    priority: fc.integer({ min: -1000, max: 1000 }),
    failoverAfterAttempts: fc.integer({ min: 1, max: 10 }),
    circuitCooldownSeconds: fc.integer({ min: 1, max: 86_400 }),
    circuitFailureThreshold: fc.integer({ min: 1, max: 1000 }),
    expectedResponse: fc.record({
      statusCodes: fc.uniqueArray(fc.integer({ min: 100, max: 599 }), { minLength: 1, maxLength: 5 }),
      bodyContains: text(1, 40),
    }),
    notifyOnFailure: fc.boolean(),
    failureThreshold: fc.integer({ min: 1, max: 1000 }),
  },
  optional,
);
const route = fc.tuple(routeFields, fc.option(inlineFilter)).map(([fields, filter]) => ({ ...fields, ...filter }));

/** Exports and imports of `count` destinations and routes that chance makes, with any store behind the API. */
export function describeTransferProperties(start: () => Promise<FacadeWorld>, count: number): void {
  let world: FacadeWorld;
  const keys: Record<string, string> = {};
  beforeAll(async () => {
    world = await start();
    for (const slug of ['from', 'to', 'git']) {
      await world.addOrganization(slug);
      keys[slug] = await world.addKey(slug);
    }
  });
  afterAll(() => world.stop());

  const request = (organization: string, method: string, path: string, body?: unknown, headers?: Record<string, string>) =>
    world.request(method, `/api/${path}`, { key: keys[organization], body, headers });
  const create = (organization: string, collection: string, body: object) => world.create(collection, body, keys[organization]);
  test('whatever is made can be exported and imported, as JSON and as manifests, and is exported as the same', async () => {
    const destinations = fc.sample(destination, count);
    for (const body of destinations) await create('from', 'destinations', body);
    await create('from', 'sources', { name: 'shop' });
    const slugs: string[] = (await request('from', 'GET', 'destinations/export')).body.destinations.map(
      (each: { slug: string }) => each.slug,
    );
    for (const [index, body] of fc.sample(route, count).entries())
      await create('from', 'routes', { ...body, name: `Route ${index}`, sourceId: 'shop', destinationIds: [slugs[index]] });

    await create('to', 'sources', { name: 'shop' });
    await world.store.apply({ kind: 'Source', metadata: { name: 'shop', namespace: 'git' }, spec: {} }, { manager: 'kubectl' });
    for (const path of ['destinations/export?includeSensitive=true', 'routes/export']) {
      const [family = ''] = path.split('/');
      const { body: document } = await request('from', 'GET', path);
      const answer = await request('to', 'POST', `${family}/import`, { ...document, conflictStrategy: 'skip' });
      expect(answer.body.errors).toEqual([]);
      expect(apart((await request('to', 'GET', path)).body)).toEqual(apart(document));

      const { text: yaml } = await request('from', 'GET', path, undefined, { accept: 'application/yaml' });
      const { objects, errors } = parseManifests('export.yaml', yaml);
      expect(errors).toEqual([]);
      for (const { metadata, ...object } of objects)
        await world.store.apply({ ...object, metadata: { name: metadata.name, namespace: 'git' } }, { manager: 'kubectl' });
      await eventually(async () => expect(apart((await request('git', 'GET', path)).body)).toEqual(apart(document)));
    }
  }, 120_000);
}
