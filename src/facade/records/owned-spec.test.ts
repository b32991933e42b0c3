import { expect, test } from '@jest/globals';
import { isPosthornError } from '../../core/errors.ts';
import type { ManagedFieldsEntry } from '../../resources/metadata.ts';
import { specTrees } from '../../resources/references.ts';
import { ownedSpec } from './owned-spec.ts';

type Spec = Record<string, unknown>;

const entry = (manager: string, operation: 'Apply' | 'Update', spec: Spec): ManagedFieldsEntry => ({
  manager,
  operation,
  apiVersion: 'posthorn.dev/v1alpha1',
  fieldsType: 'FieldsV1',
  fieldsV1: { 'f:spec': spec },
});
const item = (name: string) => ({ [`k:{"name":"${name}"}`]: { '.': {}, 'f:name': {}, 'f:value': {} } });
/** As an update of kubectl leaves it: it owns the objects and lists that it has made. */
const managedFields = [
  entry('kubectl-edit', 'Update', {
    'f:http': { 'f:url': {}, 'f:headers': { '.': {}, ...item('x-git') }, 'f:tls': { '.': {} } },
    'f:throttle': { '.': {}, 'f:mode': {}, 'f:maxConcurrency': {} },
  }),
  entry('posthorn-api', 'Apply', {
    'f:http': { 'f:headers': item('x-ours'), 'f:tls': { 'f:caBundle': {} } },
    'f:throttle': { 'f:queueLimit': {} },
  }),
];
const [git, ours] = [
  { name: 'x-git', value: '1' },
  { name: 'x-ours', value: '2' },
];
const http = { url: 'https://a.example/', headers: [git, ours], tls: { caBundle: 'PEM' } };
const current = { type: 'http', http, throttle: { mode: 'concurrency', maxConcurrency: 2, queueLimit: 10 } };
const applied = (desired: Spec, start: Spec = current, managers = managedFields) =>
  ownedSpec(specTrees.Destination, start, desired, managers);

/** Paths in FIELD_MANAGED. */
function refused(desired: Spec): string[] {
  try {
    applied(desired);
  } catch (error) {
    if (isPosthornError(error, 'FIELD_MANAGED')) return Object.keys(error.details ?? {});
    throw error;
  }
  return [];
}

test('a field of the API is taken out of an object that another manager owns, and the others of the API stay applied', () => {
  const desired = { ...current, throttle: { mode: 'concurrency', maxConcurrency: 2 } };
  expect(applied(desired)).toEqual({ http: { headers: [ours], tls: { caBundle: 'PEM' } } });
});

test('an item of the API is taken out of a list that another manager owns', () => {
  expect(applied({ ...current, http: { ...http, headers: [git] } })).toEqual({
    http: { tls: { caBundle: 'PEM' } },
    throttle: { queueLimit: 10 },
  });
});

test('the only item of a list that another manager owns leaves it empty', () => {
  const list = entry('kubectl-edit', 'Update', { 'f:http': { 'f:headers': { '.': {} } } });
  const own = entry('posthorn-api', 'Apply', { 'f:http': { 'f:headers': item('x-ours') } });
  const start = { type: 'http', http: { url: 'https://a.example/', headers: [ours] } };
  expect(applied({ ...start, http: { ...start.http, headers: [] } }, start, [list, own])).toEqual({ http: { headers: [] } });
});

test('what another manager owns does not go, nor an object or a list of it with the last field of the API', () => {
  expect(refused({ ...current, http: { ...http, headers: [ours] } })).toEqual([
    'spec.http.headers[name="x-git"]',
    'spec.http.headers[name="x-git"].name',
    'spec.http.headers[name="x-git"].value',
  ]);
  expect(refused({ ...current, throttle: { mode: 'concurrency', queueLimit: 10 } })).toEqual(['spec.throttle.maxConcurrency']);
  const { tls: _, ...withoutTls } = http;
  expect(refused({ ...current, http: withoutTls })).toEqual(['spec.http.tls.caBundle']);
  expect(refused({ ...current, http: { ...http, url: 'https://b.example/' } })).toEqual(['spec.http.url']);
});
