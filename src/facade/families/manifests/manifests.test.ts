import { expect, test } from '@jest/globals';
import type { PosthornObject } from '../../../resources/kinds.ts';
import type { ManifestKind } from './find-manifest.ts';
import { toAnswer } from './manifests.ts';

/** Paths and fields that the answer names as owned by others. */
function ownersOf(kind: ManifestKind, id: string, managers: Record<string, [operation: 'Apply' | 'Update', spec: object]>): unknown[] {
  const managedFields = Object.entries(managers).map(([manager, [operation, spec]]) => ({
    manager,
    operation,
    apiVersion: 'posthorn.dev/v1alpha1',
    fieldsType: 'FieldsV1',
    fieldsV1: { 'f:spec': spec },
  }));
  const object = {
    kind,
    metadata: { name: 'orders', namespace: 'acme', uid: '00000000-0000-4000-8000-000000000000', managedFields },
    spec: {},
  } as unknown as PosthornObject<ManifestKind>;
  return toAnswer(object, id).owners.map(({ path, field, managers: owning }) => [path, field, owning]);
}
const destination = 'dst_mzxw6ytboi4dsnrrgq3tkojqge';

test('the members of an object that a manager updates are owned, not the object around them', () => {
  const spec = { '.': {}, 'f:retryPolicy': { '.': {}, 'f:maxRetries': {} }, 'f:s3': { '.': {}, 'f:bucket': {} } };
  expect(ownersOf('Destination', destination, { 'kubectl-client-side-apply': ['Update', spec] })).toEqual([
    ['spec.retryPolicy.maxRetries', 'retryPolicy.maxRetries', ['kubectl-client-side-apply']],
    ['spec.s3.bucket', 'config.bucket', ['kubectl-client-side-apply']],
  ]);
});

test('the items of a list that a manager updates and their members are owned, not the list around them', () => {
  const route = { 'f:destinationRefs': { '.': {}, 'v:{"name":"a"}': {}, 'v:{"name":"b"}': {} } };
  expect(ownersOf('Route', 'rte_mzxw6ytboi4dsnrrgq3tkojqge', { 'kubectl-edit': ['Update', route] })).toEqual([
    ['spec.destinationRefs[={"name":"a"}]', 'destinationIds', ['kubectl-edit']],
    ['spec.destinationRefs[={"name":"b"}]', 'destinationIds', ['kubectl-edit']],
  ]);
  const headers = { 'f:http': { 'f:headers': { '.': {}, 'k:{"name":"x-a"}': { '.': {}, 'f:name': {}, 'f:value': {} } } } };
  expect(ownersOf('Destination', destination, { 'kubectl-edit': ['Update', headers] })).toEqual([
    ['spec.http.headers[name="x-a"].name', 'headers', ['kubectl-edit']],
    ['spec.http.headers[name="x-a"].value', 'headers', ['kubectl-edit']],
  ]);
});

test('an object with fields of the API alone in it is not owned by the manager that made it; one without fields is', () => {
  const made = { 'f:retryPolicy': { '.': {} }, 'f:throttle': {} };
  const ours = { 'f:retryPolicy': { 'f:maxRetries': {} } };
  expect(ownersOf('Destination', destination, { 'kubectl-edit': ['Update', made], 'posthorn-api': ['Apply', ours] })).toEqual([
    ['spec.throttle', 'throttle', ['kubectl-edit']],
  ]);
});

test('a field is not taken for a member of another whose name begins like it', () => {
  const spec = { 'f:http': { '.': {}, 'f:url': {} }, 'f:httpVersion': {} };
  expect(ownersOf('Destination', destination, { 'kubectl-edit': ['Update', spec] })).toEqual([
    ['spec.http.url', 'url', ['kubectl-edit']],
    ['spec.httpVersion', 'httpVersion', ['kubectl-edit']],
  ]);
});
