import { randomBytes } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { storedObject } from '../../test/support/objects.ts';
import { Keyring } from '../core/sealing.ts';
import type { SpecInputOf } from '../resources/kinds.ts';
import { compileDestination } from './destination.ts';
import { organizationFacts } from './organization.ts';

const inputs = {
  organization: organizationFacts(storedObject('Organization', 'acme', { namespace: 'acme' })),
  secrets: {},
  headers: [],
  shard: 0,
  keyring: new Keyring([{ id: 'k1', key: randomBytes(32) }]),
  published: null,
};
const compiled = (spec: SpecInputOf<'Destination'>) => compileDestination(storedObject('Destination', 'shop', spec, 'acme'), inputs);
const url = 'https://shop.example/hook';

test('a Destination with delays of its own has as many retries', () => {
  const spec = { http: { url }, retryPolicy: { maxRetries: 7, delaysMs: [5000, 60_000, 60_000] } };
  expect(compiled(spec)).toMatchObject({ record: { retryPolicy: { maxRetries: 3, delaysMs: [5000, 60_000, 60_000] } } });
});

test('a Destination has the headers that it forwards in lower case, an empty list as well', () => {
  const listed = (forwardHeaders: string[]) => compiled({ http: { url, forwardHeaders } }).record;
  expect(listed(['X-GitHub-Event', 'x-b'])).toMatchObject({ http: { forwardHeaders: ['x-github-event', 'x-b'] } });
  expect(listed([])).toMatchObject({ http: { forwardHeaders: [] } });
  expect(compiled({ http: { url } }).record).not.toHaveProperty('http.forwardHeaders');
});
