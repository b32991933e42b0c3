import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { configurationKinds, type Kind, kindPath } from '../../src/resources/kinds.ts';
import { systemClock } from '../../src/runtime/system-clock.ts';
import type { KubernetesApi } from '../../src/store/kubernetes/kubernetes-api.ts';
import { KubernetesStore } from '../../src/store/kubernetes/kubernetes-store.ts';
import { collectionPath } from '../../src/store/kubernetes/wire.ts';
import type { CompleteStore } from '../../src/store/store.ts';
import { type FacadeWorld, startFacadeWorld } from '../facade/facade-world.ts';
import { describeApiKeys } from '../facade/suites/api-keys.ts';
import { describeAwaitedSecrets } from '../facade/suites/awaited-secrets.ts';
import { describeBrokenOffRequests } from '../facade/suites/broken-off-requests.ts';
import { describeBulk } from '../facade/suites/bulk.ts';
import { describeCancel } from '../facade/suites/cancel.ts';
import { describeComplaints } from '../facade/suites/complaints.ts';
import { describeCronJobs } from '../facade/suites/cron-jobs.ts';
import { describeDeletions } from '../facade/suites/deletions.ts';
import { describeDestinationTls } from '../facade/suites/destination-tls.ts';
import { describeDestinationTransfer } from '../facade/suites/destination-transfer.ts';
import { describeExplainResources } from '../facade/suites/explain-resources.ts';
import { describeFailover } from '../facade/suites/failover.ts';
import { describeFields } from '../facade/suites/fields.ts';
import { describeHeaderCredentials } from '../facade/suites/header-credentials.ts';
import { describeManifests } from '../facade/suites/manifests.ts';
import { describeNotificationChannels } from '../facade/suites/notification-channels.ts';
import { describePartialSettings } from '../facade/suites/partial-settings.ts';
import { describeReferences } from '../facade/suites/references.ts';
import { describeReplayRefusals } from '../facade/suites/replay-refusals.ts';
import { describeReplays } from '../facade/suites/replays.ts';
import { describeReplicas } from '../facade/suites/replicas.ts';
import { describeRouteCircuit } from '../facade/suites/route-circuit.ts';
import { describeRouteNotifications } from '../facade/suites/route-notifications.ts';
import { describeRouteTransfer } from '../facade/suites/route-transfer.ts';
import { describeSecretUse } from '../facade/suites/secret-use.ts';
import { describeSharing } from '../facade/suites/sharing.ts';
import { describeSignatureFailures } from '../facade/suites/signature-failures.ts';
import { describeSources } from '../facade/suites/sources.ts';
import { describeTransferProperties } from '../facade/suites/transfer-properties.ts';
import { describeTransforms } from '../facade/suites/transforms.ts';
import { describeWarehouses } from '../facade/suites/warehouses.ts';
import { describeWrites } from '../facade/suites/writes.ts';
import { type ControlPlane, startControlPlane } from '../support/control-plane.ts';
import { eventually } from '../support/eventually.ts';
import { kubernetesApi } from '../support/kubernetes-api.ts';
import { RecordingApi } from '../support/recording-api.ts';
import { describeFaults } from './facade-faults.ts';

let controlPlane: ControlPlane;
let api: KubernetesApi;
let store: KubernetesStore;
let apiOfFacade: RecordingApi;
let storeOfFacade: KubernetesStore;
beforeAll(async () => {
  controlPlane = await startControlPlane({ controllerManager: true, crds: true });
  api = kubernetesApi(controlPlane);
  store = new KubernetesStore({ api, clock: systemClock });
  apiOfFacade = new RecordingApi(controlPlane);
  storeOfFacade = new KubernetesStore({ api: apiOfFacade, clock: systemClock });
}, 120_000);
afterAll(async () => {
  await api?.close();
  await apiOfFacade?.close();
  await controlPlane?.stop();
});

const namespaced = configurationKinds.filter((kind) => kindPath(kind).namespaced);

/** A facade of a suite's own on the one API server; what the suite has made goes with it, but for organizations. */
async function start(behind: CompleteStore = store): Promise<FacadeWorld> {
  const ofFacade = behind === store ? { storeOfFacade } : {};
  const world = await startFacadeWorld({ store: behind, ...ofFacade, inForceTimeoutMs: 20_000 });
  return {
    ...world,
    stop: async () => {
      // Its controllers would reconcile what refers to each removed object.
      await world.stop();
      await Promise.all(namespaced.map((kind) => removeAll(kind)));
      // The garbage collector would come to them at some later time.
      await removeAll('Secret', managedByPosthorn);
    },
  };
}

const managedByPosthorn = { label: 'app.kubernetes.io/managed-by', value: 'posthorn' };

/** Objects of a kind in all namespaces; with a label: those with it. */
async function removeAll(kind: Kind, label?: { label: string; value: string }): Promise<void> {
  const query = { labelSelector: label && `${label.label}=${label.value}` };
  await eventually(async () => {
    const { items } = await store.list(kind);
    const ours = items.filter(({ metadata: { labels } }) => label === undefined || labels?.[label.label] === label.value);
    const namespaces = new Set(ours.map(({ metadata: { namespace } }) => namespace));
    await Promise.all([...namespaces].map((namespace) => api.request('DELETE', collectionPath(kindPath(kind), namespace), { query })));
    expect(ours.length).toBe(0);
  });
}

const suites = {
  'what is written': describeWrites,
  'each field': describeFields,
  'bulk operations': describeBulk,
  'exported destinations': describeDestinationTransfer,
  'awaited secrets': describeAwaitedSecrets,
  'TLS of destinations': describeDestinationTls,
  'exported routes': describeRouteTransfer,
  'what is transferred': (begin) => describeTransferProperties(begin, 15),
  references: describeReferences,
  refusals: describeComplaints,
  replicas: describeReplicas,
  'parts of settings': describePartialSettings,
  sources: describeSources,
  'failed signatures': describeSignatureFailures,
  'the use of Secrets': describeSecretUse,
  warehouses: describeWarehouses,
  'transforms and schemas': describeTransforms,
  sharing: describeSharing,
  channels: describeNotificationChannels,
  alerts: describeRouteNotifications,
  circuits: describeRouteCircuit,
  'the cancel of messages': describeCancel,
  explanations: describeExplainResources,
  manifests: describeManifests,
  failover: describeFailover,
  'cron jobs': describeCronJobs,
  replays: describeReplays,
  'refused replays': describeReplayRefusals,
  'credentials in headers': describeHeaderCredentials,
  'API keys': describeApiKeys,
  deletions: describeDeletions,
} satisfies Record<string, (start: () => Promise<FacadeWorld>) => void>;

describe.each(Object.entries(suites))('the API on resources in Kubernetes: %s', (_, describeSuite) => {
  describeSuite(() => start());
});
describe('the API on resources in Kubernetes: a request that was broken off before its answer was kept', () => {
  describeBrokenOffRequests((around) => start(around(store)));
});
describe('the API on resources in Kubernetes: what kubectl has created', () => {
  let world: FacadeWorld;
  beforeAll(async () => {
    world = await start();
  });
  afterAll(() => world?.stop());

  test('the API on resources in Kubernetes: what kubectl has created keeps its objects and lists when the API takes out what it has put into them', async () => {
    const headers = [{ name: 'x-team', value: 'shop' }];
    const spec = {
      type: 'http',
      http: { url: 'https://hooks.example.com/in', headers },
      throttle: { mode: 'concurrency', maxConcurrency: 2 },
    };
    const created = { apiVersion: 'posthorn.dev/v1alpha1', kind: 'Destination', metadata: { name: 'by-kubectl' }, spec };
    const { root, plural } = kindPath('Destination');
    await api.request('POST', `${root}/namespaces/acme/${plural}`, { query: { fieldManager: 'kubectl-create' }, body: created });
    const patched = (body: object) => world.request('PATCH', '/api/destinations/by-kubectl', { body });
    const added = { headers: { 'x-team': 'shop', 'x-ours': '1' }, throttle: { queueLimit: 10 } };
    await eventually(async () => expect((await patched(added)).status).toBe(200));
    const { status, body } = await patched({ headers: { 'x-team': 'shop' }, throttle: { queueLimit: null } });
    expect([status, body.headers, body.throttle.queueLimit]).toEqual([200, { 'x-team': 'shop' }, null]);
    expect(await store.get('Destination', { name: 'by-kubectl', namespace: 'acme' })).toMatchObject({ spec: { http: { headers } } });
    const refused = await patched({ headers: {} });
    expect([refused.status, refused.body.code]).toEqual([409, 'FIELD_MANAGED']);
  });
});
test('in all this the API has made and deleted Secrets, and read or listed none', () => {
  const ofSecrets = [...apiOfFacade.asked].filter((what) => what.endsWith(' secrets'));
  expect(ofSecrets.sort()).toEqual(['DELETE secrets', 'PATCH secrets']);
});
describe('the API on an API server that fails', () => {
  describeFaults(() => controlPlane, start);
});
