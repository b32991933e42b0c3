import { expect, test } from '@jest/globals';
import type { FormField, FormNode } from '../../api/form-schema.ts';
import { fields as destinations } from '../../api/forms/destinations.ts';
import { fields as routes } from '../../api/forms/routes.ts';
import { lockOf, type Owned, withoutLocked } from './locks.ts';

const text: FormNode = { kind: 'text' };
const number: FormNode = { kind: 'number' };
const references: FormNode = { kind: 'references', to: 'destinations' };
const map: FormNode = { kind: 'map' };
const inGit: FormNode = { kind: 'object', fields: [] };

const ownedBy = (...fields: [path: string, field: string][]): Owned => ({
  isLocked: false,
  owners: fields.map(([path, field]) => ({ path, field, pointer: null, managers: ['argocd'] })),
});
const whole = { managers: ['argocd'], isWhole: true };
const inPart = { managers: ['argocd'], isWhole: false };

test('a member that Git owns is locked; what is beside it and the object around it are not', () => {
  const owned = ownedBy(['spec.retryPolicy.maxRetries', 'retryPolicy.maxRetries'], ['spec.s3.bucket', 'config.bucket']);
  expect(lockOf(owned, 'retryPolicy.maxRetries', number)).toEqual(whole);
  expect(lockOf(owned, 'retryPolicy.maxDelay', number)).toBeNull();
  expect(lockOf(owned, 'retryPolicy', inGit)).toBeNull();
  expect(lockOf(owned, 'config.bucket', text)).toEqual(whole);
  expect(lockOf(owned, 'config.prefix', text)).toBeNull();
  expect(lockOf(owned, 'config', { kind: 'branches', on: 'type', branches: {} })).toBeNull();
});

test('a list of which Git owns items takes others', () => {
  const owned = ownedBy(['spec.destinationRefs[="a"]', 'destinationIds'], ['spec.http.headers[name="x"].value', 'headers']);
  expect(lockOf(owned, 'destinationIds', references)).toEqual(inPart);
  expect(lockOf(owned, 'headers', map)).toEqual(inPart);
  expect(lockOf(ownedBy(['spec.destinationRefs', 'destinationIds']), 'destinationIds', references)).toEqual(whole);
});

test('all within what Git owns as a whole is locked, and everything of a resource that a manifest declares', () => {
  expect(lockOf(ownedBy(['spec.retryPolicy', 'retryPolicy']), 'retryPolicy.maxDelay', number)).toEqual(whole);
  expect(lockOf({ isLocked: true, owners: [] }, 'name', text)).toEqual({ managers: [], isWhole: true });
  expect(lockOf(null, 'name', text)).toBeNull();
});

const restored = (fields: readonly FormField[], owned: Owned, start: object, body: object) =>
  withoutLocked(fields, owned, { ...start }, { ...body });

test('fields that are locked are as they began again, and the others stay as they were typed', () => {
  const owned = ownedBy(
    ['spec.http.url', 'url'],
    ['spec.description', 'description'],
    ['spec.retryPolicy.maxRetries', 'retryPolicy.maxRetries'],
    ['spec.http.headers[name="x"].value', 'headers'],
  );
  const start = { name: 'a', type: 'HTTP', url: 'https://a.example', retryPolicy: { maxRetries: 3, maxDelay: 1 }, headers: { x: '1' } };
  const typed = { name: 'b', type: 'HTTP', url: 'https://b.example', description: 'c', retryPolicy: { maxRetries: 4, maxDelay: 2 } };
  expect(restored(destinations, owned, start, { ...typed, headers: { x: '1', y: '2' } })).toEqual({
    name: 'b',
    type: 'HTTP',
    url: 'https://a.example',
    retryPolicy: { maxRetries: 3, maxDelay: 2 },
    headers: { x: '1', y: '2' },
  });
});

test('an object that was emptied has its locked members again', () => {
  const owned = ownedBy(['spec.retryPolicy.maxRetries', 'retryPolicy.maxRetries']);
  const start = { name: 'a', retryPolicy: { maxRetries: 3, maxDelay: 1 } };
  expect(restored(destinations, owned, start, { name: 'a' })).toEqual({ name: 'a', retryPolicy: { maxRetries: 3 } });
  expect(restored(destinations, owned, { name: 'a' }, { name: 'a' })).toEqual({ name: 'a' });
});

test('the branch that a locked field chooses has its locked members again', () => {
  const owned = ownedBy(['spec.http.auth.type', 'authType'], ['spec.http.auth.tokenSecretRef', 'authConfig.token']);
  const start = { authType: 'bearer', authConfig: { token: 'masked' } };
  expect(restored(destinations, owned, start, { authType: 'basic', authConfig: { token: 'typed' } })).toEqual(start);
  const list = ownedBy(['spec.destinationRefs', 'destinationIds']);
  expect(restored(routes, list, { destinationIds: ['a'] }, { destinationIds: ['b'], name: 'c' })).toEqual({
    destinationIds: ['a'],
    name: 'c',
  });
});
