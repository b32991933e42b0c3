import { expect } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import {
  ask,
  conditionIs,
  delivers,
  deliveryBecomes,
  hasWarning,
  inShop,
  objectOf,
  poolless,
  poolOf,
  putInPool,
  removePool,
  shop,
  shopScreenShows,
  takesEvent,
  takesRoutedEvent,
} from './broken-installation.ts';
import { type Failures, notReady } from './failure.ts';
import { kubectlApply } from './kubectl.ts';
import { inSystem, patience, patienceMs, system } from './system-commands.ts';

const noPods = 'no-pods';
/** Ids of events that ingest accepts while something is broken. */
let waiting: string;
let refused: string;

/** Failures of pools and of objects of an organization. All but the second are independent of each other. */
export const objectFailures = {
  'the pool of an organization does not exist': {
    make: () => putInPool(poolless, 'nowhere'),
    mend: () => putInPool(poolless, null),
    kubectl: () => conditionIs('default', `organization/${poolless.name}`, 'ResolvedRefs', 'False DeliveryPoolNotFound'),
    helm: 'nothing',
    api: async () => {
      await conditionIs('default', `organization/${poolless.name}`, 'ResolvedRefs', 'False DeliveryPoolNotFound');
      await delivers(poolless);
    },
    ...notReady('Organization'),
  },
  'the pool `default` is deleted': {
    make: async () => {
      // The pool that replaces it gets no pods.
      const quota = {
        apiVersion: 'v1',
        kind: 'ResourceQuota',
        metadata: { name: noPods, namespace: system },
        spec: { hard: { pods: '0' } },
      };
      await kubectlApply([quota]);
      // Kubernetes does not refuse pods before it has counted them.
      await inSystem('wait', `resourcequota/${noPods}`, '--for=jsonpath={.status.hard.pods}=0', patience);
      await inSystem('delete', 'deliverypool', 'default', patience);
    },
    mend: async () => {
      await inSystem('delete', 'resourcequota', noPods);
      // A new ReplicaSet tries at once.
      await inSystem('delete', 'replicasets', '-l', 'app.kubernetes.io/component=delivery');
      await inSystem('wait', 'deliverypool/default', '--for=condition=Ready', patience);
      await deliveryBecomes(shop, waiting, { status: 'delivered' });
    },
    kubectl: () => inSystem('wait', 'deliverypool/default', '--for=create', patience),
    helm: 'nothing',
    metrics: [{ name: 'posthorn_pool_workers', labels: /pool="default",state="ready"/, is: (value) => value === 0 }],
    alerts: ['PosthornPoolWithoutWorkers'],
    api: async () => {
      waiting = await takesEvent(shop, 'orders');
      await deliveryBecomes(shop, waiting, { status: 'pending', attempts: 0, waitingFor: 'queue' });
    },
    console: /No delivery worker is alive/,
  },
  'a Secret is deleted': {
    make: () => inShop('delete', 'secret', 'signing'),
    mend: () => kubectlApply(shop.secrets),
    kubectl: async () => {
      await conditionIs(shop.name, 'destination/kept', 'ResolvedRefs', 'False SecretNotFound');
      await hasWarning('SecretNotFound');
    },
    helm: 'nothing',
    api: async () => {
      await conditionIs(shop.name, 'destination/kept', 'ResolvedRefs', 'False SecretNotFound');
      expect((await delivers(shop)).headers['webhook-signature']).toMatch(/^v1,/);
    },
    ...notReady('Destination'),
  },
  'a destination is forbidden by the egress rules': {
    make: async () => {
      await kubectlApply([
        objectOf(shop, 'Destination', 'forbidden', { type: 'http', http: { url: 'https://10.255.255.1/hooks' } }),
        objectOf(shop, 'Route', 'forbidden', { sourceRef: { name: 'forbidden' }, destinationRefs: [{ name: 'forbidden' }] }),
      ]);
    },
    mend: () => inShop('delete', 'route/forbidden', 'destination/forbidden'),
    kubectl: async () => {
      await conditionIs(shop.name, 'destination/forbidden', 'Accepted', 'False AddressNotAllowed');
      await hasWarning('AddressNotAllowed');
    },
    helm: 'nothing',
    api: async () => {
      await inShop('wait', 'route/forbidden', '--for=condition=Programmed', patience);
      await deliveryBecomes(shop, await takesRoutedEvent(shop, 'forbidden'), { lastErrorType: 'blocked' });
    },
    ...notReady('Destination'),
  },
  'a receiver fails': {
    make: async () => {
      refused = await takesEvent(shop, 'open');
    },
    mend: () => inShop('delete', 'route/open'),
    kubectl: async () => {
      await conditionIs(shop.name, 'destination/dead', 'Delivering', 'False CircuitOpen');
      await hasWarning('CircuitOpen');
      await eventually(async () => expect(await inShop('get', 'prt', 'open')).toMatch(/CIRCUIT[\s\S]*open/), patienceMs);
    },
    helm: 'nothing',
    metrics: [{ name: 'posthorn_circuits', labels: /state="open"/ }],
    alerts: ['PosthornCircuitsOpen'],
    api: () => deliveryBecomes(shop, refused, { waitingFor: 'circuit_open' }),
    console: async () => {
      const { id } = (await ask(shop, '/api/routes/open')).body;
      await shopScreenShows(`routes?at=${id}`, /Circuit[\s\S]*Open[\s\S]*Next probe in/i);
    },
  },
  'a DeliveryPool names a Secret that does not exist': {
    make: async () => {
      await kubectlApply([poolOf('refused', { replicas: 1 })]);
      await inSystem('wait', 'deliverypool/refused', '--for=condition=Ready', patience);
      await inSystem('patch', 'deliverypool', 'refused', '--type=merge', '-p', '{"spec":{"redis":{"secretRef":{"name":"nowhere"}}}}');
    },
    mend: () => removePool('refused'),
    kubectl: () => conditionIs(system, 'deliverypool/refused', 'Accepted', 'False SecretNotFound'),
    helm: 'nothing',
    metrics: [{ name: 'posthorn_pool_accepted', labels: /pool="refused"/, is: (value) => value === 0 }],
    alerts: ['PosthornPoolNotAccepted'],
    api: async () => {
      await conditionIs(system, 'deliverypool/refused', 'Accepted', 'False SecretNotFound');
      const state = 'jsonpath={.metadata.generation} {.status.readyReplicas}';
      await eventually(
        async () => expect(await inSystem('get', 'deployment', 'posthorn-delivery-refused', '-o', state)).toBe('1 1'),
        patienceMs,
      );
    },
    console: /DeliveryPool refused has Accepted=False/,
  },
  'the autoscaler of a pool gets no metric': {
    make: () => kubectlApply([poolOf('scaled', { autoscaling: { mode: 'hpa', min: 1, max: 2 } })]),
    mend: () => removePool('scaled'),
    kubectl: () =>
      eventually(async () => {
        const path = 'jsonpath={.status.conditions[?(@.type=="Autoscaling")].status}';
        expect(await inSystem('get', 'deliverypool', 'scaled', '-o', path)).toBe('False');
      }, patienceMs),
    helm: 'nothing',
    metrics: [{ name: 'posthorn_pool_autoscaling_available', labels: /pool="scaled"/, is: (value) => value === 0 }],
    alerts: ['PosthornPoolNotScaling'],
    console: /DeliveryPool scaled has Autoscaling=False/,
  },
} satisfies Failures;
