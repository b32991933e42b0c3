import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { crdComplaints } from '../../src/cmd/crd-check.ts';
import { crdFor } from '../../src/resources/custom-resource-definitions.ts';
import type { PosthornKind } from '../../src/resources/kinds.ts';
import { type ControlPlane, startControlPlane } from '../support/control-plane.ts';
import { eventually } from '../support/eventually.ts';

const deadlineMs = 60_000;
const crds = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';

let controlPlane: ControlPlane;
beforeAll(async () => {
  controlPlane = await startControlPlane({ crds: true });
}, 120_000);
afterAll(() => controlPlane.stop());

const complaints = (): Promise<string[]> => crdComplaints(controlPlane);

/** The API server publishes its schemas some time after a change. */
const complains = (expected: string[]): Promise<void> => eventually(async () => expect(await complaints()).toEqual(expected), deadlineMs);

interface Fields {
  properties: Record<string, Fields>;
  items: Fields;
  'x-kubernetes-validations'?: unknown;
}

/** Stores the CustomResourceDefinition of the kind after `change` of its schema, without the rules and the selectable fields, which may name what is gone. */
async function store(kind: PosthornKind, change: (schema: Fields) => void): Promise<void> {
  const crd = crdFor(kind);
  const { versions } = crd.spec as { versions: [{ selectableFields: unknown; schema: { openAPIV3Schema: Fields } }] };
  const [{ selectableFields: _, ...version }] = versions;
  const schema = structuredClone(version.schema.openAPIV3Schema);
  change(schema);
  for (const part of [schema, below(schema, 'spec')]) delete part['x-kubernetes-validations'];
  const patch = { spec: { versions: [{ ...version, schema: { openAPIV3Schema: schema } }] } };
  await controlPlane.request('PATCH', `${crds}/${crd.metadata.name}`, patch, 'application/merge-patch+json');
}

/** The schema below a path of properties. */
const below = (schema: Fields, ...path: string[]): Fields =>
  path.reduce((at, name) => (name === '[]' ? at.items : (at.properties[name] as Fields)), schema);

test('the CustomResourceDefinitions of this release lack nothing', async () => {
  await complains([]);
}, 180_000);

test.each<[string, PosthornKind, (schema: Fields) => void, string]>([
  [
    'a field of the spec',
    'Route',
    (schema) => delete below(schema, 'spec').properties['failover'],
    'the CustomResourceDefinition routes.posthorn.dev lacks spec.failover',
  ],
  [
    'fields of a field',
    'Destination',
    (schema) => {
      delete below(schema, 'spec', 'http').properties['tls'];
      delete below(schema, 'spec').properties['s3'];
    },
    'the CustomResourceDefinition destinations.posthorn.dev lacks spec.http.tls, spec.s3',
  ],
  [
    'a field of a list',
    'Filter',
    (schema) => delete below(schema, 'spec', 'conditions', '[]').properties['value'],
    'the CustomResourceDefinition filters.posthorn.dev lacks spec.conditions.[].value',
  ],
  [
    'a field of the status',
    'Organization',
    (schema) => delete below(schema, 'status').properties['id'],
    'the CustomResourceDefinition organizations.posthorn.dev lacks status.id',
  ],
])(
  'what lacks %s is named until it is mended',
  async (_, kind, change, complaint) => {
    await store(kind, change);
    await complains([complaint]);
    await store(kind, () => {});
    await complains([]);
  },
  150_000,
);

test('a kind that the API server does not have is named', async () => {
  await controlPlane.request('DELETE', `${crds}/${crdFor('PayloadSchema').metadata.name}`);
  await complains(['the CustomResourceDefinition payloadschemas.posthorn.dev is missing']);
}, 180_000);
