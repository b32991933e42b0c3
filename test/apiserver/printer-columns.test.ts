import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { z } from 'zod';
import { selectableFieldsOf } from '../../src/resources/custom-resource-definitions.ts';
import { isRecord } from '../../src/resources/field-tree.ts';
import { kindPath, kinds, type PosthornKind, posthornKinds } from '../../src/resources/kinds.ts';
import { type ControlPlane, kubernetesAssets, startControlPlane } from '../support/control-plane.ts';
import { ApiClient, collectionPath } from './api-client.ts';

const namespace = 'default';
const specs: Record<PosthornKind, Record<string, unknown>> = {
  Organization: { namespace: 'acme' },
  Source: { provider: 'github' },
  Destination: { http: { url: 'https://shop.example/hooks' } },
  Route: { sourceRef: { name: 'github' }, transformRef: { name: 'small' }, destinationRefs: [{ name: 'shop' }] },
  Filter: { conditions: [{ field: 'a', operator: 'exists' }] },
  Transform: { code: 'payload' },
  PayloadSchema: { jsonSchema: { type: 'object' } },
  HttpCronJob: { schedule: '0 6 * * *', url: 'https://shop.example/run' },
  Replay: { what: 'deliveries' },
  NotificationChannel: { type: 'email', email: { addresses: ['team@example.com'] } },
  ApiKey: { sha256: '0'.repeat(64), role: 'viewer' },
  WebhookEventType: { name: 'sample', category: 'Orders' },
  WebhookApplication: { externalId: 'customer-17' },
  WebhookEndpoint: {
    applicationRef: { name: 'shop' },
    url: 'https://shop.example/hooks',
    signingSecretRef: { name: 'shop', key: 'secret' },
  },
  WebhookSubscription: { endpointRef: { name: 'hooks' }, eventTypeRef: { name: 'order.paid' } },
  DeliveryPool: { image: 'posthorn:1' },
};
const ready = { type: 'Ready', status: 'False', reason: 'SecretNotFound', message: '', lastTransitionTime: '2026-01-31T12:00:00Z' };
const circuit = { state: 'open', since: '2026-01-31T12:00:00Z' };
const statuses: Partial<Record<PosthornKind, Record<string, unknown>>> = {
  HttpCronJob: { lastScheduleTime: '2026-01-31T12:00:00Z' },
  Replay: {
    phase: 'Running',
    plan: { candidates: 40, isEstimate: false, bytes: 4000, targets: 2, estimatedSeconds: 1 },
    queued: 30,
    delivered: 20,
    failed: 1,
  },
  Destination: { circuit },
  Route: { circuit },
  WebhookEndpoint: { circuit },
  Source: { ingestPath: '/ingest/acme/github' },
  PayloadSchema: { version: 3 },
  DeliveryPool: { readyReplicas: 2, desiredReplicas: 3, backlog: 17, oldestMessageAgeSeconds: 5 },
};
/** What the columns between Name, Ready, Reason and Age show; the wide ones last. */
const shown: Record<PosthornKind, [names: string[], cells: unknown[]]> = {
  Organization: [
    ['Namespace', 'Plan', 'Installation'],
    ['acme', 'enterprise', 'default'],
  ],
  Source: [
    ['Provider', 'Enabled', 'Path'],
    ['github', true, '/ingest/acme/github'],
  ],
  Destination: [
    ['Type', 'Enabled', 'Circuit', 'URL'],
    ['http', true, 'open', 'https://shop.example/hooks'],
  ],
  Route: [
    ['Source', 'Enabled', 'Circuit'],
    ['github', true, 'open'],
  ],
  Filter: [['Logic'], ['AND']],
  Transform: [['Type'], ['jsonata']],
  PayloadSchema: [['Version'], [3]],
  NotificationChannel: [
    ['Type', 'Enabled'],
    ['email', true],
  ],
  HttpCronJob: [
    ['Schedule', 'Enabled', 'Last', 'Time Zone', 'URL'],
    ['0 6 * * *', true, expect.anything(), 'UTC', 'https://shop.example/run'],
  ],
  Replay: [
    ['Phase', 'Planned', 'Queued', 'Delivered', 'Failed', 'Waiting'],
    ['Running', 40, 30, 20, 1, null],
  ],
  ApiKey: [
    ['Role', 'Expires'],
    ['viewer', expect.anything()],
  ],
  WebhookEventType: [
    ['Type', 'Enabled', 'Category'],
    ['sample', true, 'Orders'],
  ],
  WebhookApplication: [
    ['External Id', 'Enabled'],
    ['customer-17', true],
  ],
  WebhookEndpoint: [
    ['Application', 'Enabled', 'Circuit', 'URL'],
    ['shop', true, 'open', 'https://shop.example/hooks'],
  ],
  WebhookSubscription: [
    ['Endpoint', 'Event Type', 'Enabled'],
    ['hooks', 'order.paid', true],
  ],
  DeliveryPool: [
    ['Pods', 'Desired', 'Backlog', 'Oldest', 'Image'],
    [2, 3, 17, 5, 'posthorn:1'],
  ],
};
/** By which a list can be chosen, but for the id. */
const selectable: Record<PosthornKind, string[]> = {
  Organization: ['spec.namespace', 'spec.plan', 'spec.installation'],
  Source: ['spec.provider', 'spec.enabled', 'status.ingestPath'],
  Destination: ['spec.type', 'spec.enabled', 'status.circuit.state', 'spec.http.url'],
  Route: [
    'spec.sourceRef.name',
    'spec.filterRef.name',
    'spec.transformRef.name',
    'spec.schemaRef.name',
    'spec.enabled',
    'status.circuit.state',
  ],
  Filter: ['spec.logic'],
  Transform: ['spec.type'],
  PayloadSchema: [],
  HttpCronJob: ['spec.schedule', 'spec.enabled', 'spec.timeZone', 'spec.url'],
  Replay: ['spec.destinationRef.name', 'status.phase'],
  NotificationChannel: ['spec.type', 'spec.enabled'],
  ApiKey: ['spec.role', 'spec.expiresAt'],
  WebhookEventType: ['spec.name', 'spec.enabled', 'spec.category'],
  WebhookApplication: ['spec.externalId', 'spec.enabled'],
  WebhookEndpoint: ['spec.applicationRef.name', 'spec.enabled', 'status.circuit.state', 'spec.url'],
  WebhookSubscription: ['spec.endpointRef.name', 'spec.eventTypeRef.name', 'spec.transformRef.name', 'spec.enabled'],
  DeliveryPool: ['spec.image'],
};
const table = z.looseObject({
  columnDefinitions: z.array(z.looseObject({ name: z.string() })),
  rows: z.array(z.looseObject({ cells: z.array(z.unknown()) })),
});

const list = z.object({ items: z.array(z.object({ metadata: z.object({ name: z.string() }) })) });

let plane: ControlPlane;
let client: ApiClient;

beforeAll(async () => {
  plane = await startControlPlane({ crds: true });
  client = new ApiClient(plane);
  for (const kind of posthornKinds) await makeSample(kind);
}, 120_000);

afterAll(async () => {
  await client?.close();
  await plane?.stop();
});

describe('what kubectl shows', () => {
  test.each(posthornKinds)('a list of kind %s has the columns that an operator requests first', async (kind) => {
    const answer = await client.send('GET', collectionPath(kind, namespace), undefined, 'application/json;as=Table;v=v1;g=meta.k8s.io');
    const { columnDefinitions, rows } = table.parse(answer.body);
    const [names, cells] = shown[kind];
    expect(columnDefinitions.map(({ name }) => name)).toEqual(['Name', 'Ready', 'Reason', ...names, 'Age']);
    expect(rows[0]?.cells).toEqual(['sample', 'False', 'SecretNotFound', ...cells, expect.anything()]);
  });

  test.each(posthornKinds)(
    'objects of kind %s are selected by what they refer to, by their id and by what the columns show',
    async (kind) => {
      const fields = [...('id' in kinds[kind].status.shape ? ['status.id'] : []), ...selectable[kind]];
      expect(
        selectableFieldsOf(kind)
          .map((field) => field.slice(1))
          .sort(),
      ).toEqual([...fields].sort());
      const { body } = await client.send('GET', `${collectionPath(kind, namespace)}/sample`);
      const names = async (selector: string): Promise<string[]> => {
        const answer = await client.send('GET', `${collectionPath(kind, namespace)}?fieldSelector=${encodeURIComponent(selector)}`);
        return list.parse(answer.body).items.map(({ metadata }) => metadata.name);
      };
      for (const field of fields) {
        const value = textAt(body, field.split('.'));
        expect([field, await names(`${field}=${value}`)]).toEqual([field, ['sample']]);
        expect([field, await names(`${field}!=${value}`)]).toEqual([field, []]);
      }
    },
  );

  test('kubectl selects by field what has a circuit that is not closed', async () => {
    const names = (selector: string): Promise<string> =>
      kubectl('get', 'destinations', '-n', namespace, '-o', 'name', '--field-selector', selector);
    expect(await names('status.circuit.state!=closed,status.circuit.state!=')).toBe('destination.posthorn.dev/sample\n');
    expect(await names('status.circuit.state!=open,status.circuit.state!=')).toBe('');
  });

  test('the category lists all kinds', async () => {
    const names = (await kubectl('api-resources', '--categories=posthorn', '-o', 'name')).trim().split('\n');
    expect(names.sort()).toEqual(posthornKinds.map((kind) => `${kinds[kind].plural}.posthorn.dev`).sort());
  });
});

async function makeSample(kind: PosthornKind): Promise<void> {
  const { apiVersion, namespaced } = kindPath(kind);
  const { idPrefix, status } = kinds[kind];
  const path = collectionPath(kind, namespace);
  const expires = kind === 'ApiKey' ? { expiresAt: '2027-01-31T00:00:00Z' } : {};
  const metadata = { name: 'sample', ...(namespaced && { namespace }) };
  const made = await client.write(path, { apiVersion, kind, metadata, spec: { ...specs[kind], ...expires } }, { keep: true });
  const id = 'id' in status.shape ? { id: `${idPrefix}17` } : {};
  const withStatus = { ...made.object, status: { conditions: [ready], ...id, ...statuses[kind] } };
  await client.write(path, withStatus, { name: 'sample/status', keep: true });
}

/** As the API server compares it: of an absent field the empty text. */
function textAt(value: unknown, [name, ...rest]: readonly string[]): string {
  if (name === undefined) return value === undefined ? '' : String(value);
  return textAt(isRecord(value) ? value[name] : undefined, rest);
}

async function kubectl(...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(join(kubernetesAssets(), 'kubectl'), [`--kubeconfig=${plane.kubeconfigPath}`, ...args]);
  return stdout;
}
