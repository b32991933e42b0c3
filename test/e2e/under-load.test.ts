import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type CertificateAuthority, createCertificateAuthority } from '../support/certificate-authority.ts';
import { eventually } from '../support/eventually.ts';
import { deployedChart, helm } from '../support/helm.ts';
import { describeInCluster } from '../support/in-cluster.ts';
import { allResources } from './all-resources.ts';
import { startBacklogAdapter } from './backlog-adapter.ts';
import { replacingWorkers } from './cluster-world.ts';
import { kubectl, kubectlApply } from './kubectl.ts';
import { migrated } from './migrate-job.ts';
import { enforcePolicies } from './policy-enforcement.ts';
import { imageOf, SteadyLoad } from './steady-load.ts';
import { UnfinishedWork } from './unfinished-work.ts';
import {
  type ApiIngest,
  addOtherTag,
  applySamples,
  imageWith,
  removeSamples,
  rollBack,
  samplesAreReady,
  type Tag,
  upgradeTo,
  valuesOfInstallation,
} from './upgrades.ts';

const inSystem = ['--namespace', 'posthorn-system'];
const workers = 'deployment/posthorn-delivery-default';

const podsOfRoles = 'app.kubernetes.io/name=posthorn,app.kubernetes.io/component in (controller,api,ingest,delivery)';
const workerPods = (): Promise<string[]> => podsWith('posthorn.dev/delivery-pool=default');

async function podsWith(selector: string): Promise<string[]> {
  const names = await kubectl(['get', 'pods', ...inSystem, '--selector', selector, '-o', 'name']);
  return names.split('\n').filter((name) => name !== '');
}

async function scaleTo(replicas: number): Promise<void> {
  await kubectl(['scale', 'deliverypool/default', ...inSystem, `--replicas=${replicas}`]);
  await eventually(`${replicas} workers`, 180_000, async () => {
    const ready = await kubectl(['get', workers, ...inSystem, '-o', 'jsonpath={.status.readyReplicas}']);
    return Number(ready) === replicas && (await workerPods()).length === replicas;
  });
}

async function workersHave(tag: Tag): Promise<void> {
  await eventually('the controller to give the workers the image', 180_000, async () => (await imageOf(workers)) === imageWith(tag));
  await kubectl(['rollout', 'status', workers, ...inSystem, '--timeout=180s']);
}

const tries = `
  import { connect } from 'node:net';
  const opens = (place) => new Promise((resolve) => {
    const [, host, port] = /^(.+):(\\d+)$/.exec(place);
    const socket = connect({ host, port, timeout: 5000 });
    const end = (isOpen) => { socket.destroy(); resolve([place, isOpen]); };
    socket.on('connect', () => end(true)).on('timeout', () => end(false)).on('error', () => end(false));
  });
  console.log(JSON.stringify(Object.fromEntries(await Promise.all(process.argv.slice(1).map(opens)))));`;

/** Which of these addresses a process in the pod can connect to. */
async function opened(namespace: string, pod: string, places: readonly string[]): Promise<Record<string, boolean>> {
  return JSON.parse(await kubectl(['exec', '-n', namespace, pod, '--', 'node', '--input-type=module', '--eval', tries, ...places]));
}

describeInCluster('an installation that is sent 20 events a second', () => {
  const load = new SteadyLoad();
  const unfinished = new UnfinishedWork();
  let authority: CertificateAuthority | null = null;
  let before: Record<string, object>;
  /** Values of the installation as it was, while another may have replaced it. */
  let valuesToRestore: string | null = null;
  let values: string;
  const upgrade = (tag: Tag, apiIngest: ApiIngest) =>
    upgradeTo(tag, apiIngest, values, '--set-file', `egress.caCertificates=${authority?.file}`);
  beforeAll(async () => {
    authority = createCertificateAuthority();
    values = await valuesOfInstallation();
    valuesToRestore = values;
    // Workers that do not trust the authority yet would fail where a first attempt is to be refused.
    await Promise.all([addOtherTag(), replacingWorkers(() => upgrade('deployed', 'Routed'))]);
    await Promise.all([applySamples(), load.start({ perSecond: 20 }), unfinished.start(authority)]);
    before = await allResources();
  }, 1_200_000);
  // The suites that follow meet the installation as it was also when an upgrade has failed.
  afterAll(async () => {
    if (valuesToRestore === null) return;
    await upgradeTo('deployed', 'Off', valuesToRestore);
    await workersHave('deployed');
  }, 1_200_000);
  afterAll(async () => {
    await Promise.all([load.remove(), unfinished.remove(), removeSamples()]);
    authority?.remove();
  }, 600_000);

  /** Waits until every pod has the image with the tag, none of which has ended since it was made, and everything is as it was. */
  const isReplacedBy = async (tag: Tag, replace: () => Promise<unknown>): Promise<void> => {
    const pods = await podsWith(podsOfRoles);
    await replace();
    await workersHave(tag);
    await eventually('the pods of before to end', 180_000, async () => {
      const there = await podsWith(podsOfRoles);
      return pods.some((pod) => there.includes(pod)) ? undefined : true;
    });
    await load.goesOn();
    await load.losesNothing();
    expect(load.repeated).toEqual([]);
    const ofEachPod = '{range .items[*]}{.spec.containers[*].image} {.status.containerStatuses[*].restartCount}{"\\n"}{end}';
    const running = await kubectl(['get', 'pods', ...inSystem, '--selector', podsOfRoles, '-o', `jsonpath=${ofEachPod}`]);
    expect(new Set(running.trim().split('\n'))).toEqual(new Set([`${imageWith(tag)} 0`]));
    expect(await allResources()).toEqual(before);
    await samplesAreReady();
    await unfinished.isAsItWas();
  };

  test('loses none and delivers none twice while an upgrade replaces every pod, and everything is as it was', async () => {
    await isReplacedBy('other', () => upgrade('other', 'Routed'));
  }, 900_000);

  test('loses none and delivers none twice while the upgrade is rolled back', async () => {
    await isReplacedBy('deployed', rollBack);
  }, 900_000);

  test('loses none and refuses none while ingest takes over from the API pods, which then take no events', async () => {
    await upgrade('deployed', 'Served');
    await load.goesOn();
    await load.sendTo('ingest');
    await load.leadsTo('ingest');
    await upgrade('deployed', 'Off');
    valuesToRestore = null;
    await eventually(
      'the API pods that took events to end',
      180_000,
      async () => (await podsWith('app.kubernetes.io/component=api')).length === 1,
    );
    await load.goesOn(60);
    await load.losesNothing();
    expect(load.repeated).toEqual([]);
    const post =
      "const answer = await fetch(process.argv[1], { method: 'POST', body: '{}' }); process.stdout.write(String(answer.status));";
    const url = `http://posthorn-api.posthorn-system.svc/ingest/${load.namespace}/load`;
    const inSender = ['exec', '-n', load.namespace, 'pod/sender', '--', 'node', '--input-type=module', '--eval'];
    expect(await kubectl([...inSender, post, url])).toBe('404');
  }, 900_000);

  test('delivers once what has waited since before the upgrade, and posthorn migrate finds nothing to complain of', async () => {
    await unfinished.finish();
    expect(await migrated()).toMatch(/; 0 complaints\neverything is in layout \d+\n$/);
    await load.goesOn();
    // Its hosts would open the network to all workers.
    await removeSamples();
  }, 1_200_000);

  test('loses none and delivers none twice while its organization goes to another pool and back', async () => {
    const replicas = Number(await kubectl(['get', 'deliverypool/default', ...inSystem, '-o', 'jsonpath={.spec.replicas}']));
    const repeatedBefore = load.repeated.length;
    const metadata = { name: 'second', namespace: 'posthorn-system' };
    await kubectlApply([{ apiVersion: 'posthorn.dev/v1alpha1', kind: 'DeliveryPool', metadata, spec: { replicas: 1 } }]);
    try {
      await kubectl(['wait', '--for=condition=Ready', 'deliverypool/second', ...inSystem, '--timeout=180s']);
      await load.moveTo('second');
      // No other worker is there to deliver.
      await scaleTo(0);
      await load.goesOn(60);
      await load.moveTo(null);
      await scaleTo(replicas);
      await load.goesOn();
      await load.moveTo('second');
      await load.goesOn();
      // Its workers go with it: whom it served goes back by itself.
      await kubectl(['delete', 'deliverypool/second', ...inSystem, '--wait=true', '--timeout=180s']);
      await load.losesNothing();
      expect(load.repeated.slice(repeatedBefore)).toEqual([]);
    } finally {
      await kubectl(['delete', 'deliverypool/second', ...inSystem, '--ignore-not-found', '--wait=false']);
      await scaleTo(replicas);
    }
  }, 900_000);

  test('loses none and delivers none twice while a HorizontalPodAutoscaler lets its pool grow by the backlog, and shrink', async () => {
    const repeatedBefore = load.repeated.length;
    const metadata = { name: 'scaled', namespace: 'posthorn-system' };
    const spec = { concurrency: 2, autoscaling: { mode: 'hpa', min: 1, max: 3, targetBacklogPerPod: 10 } };
    const has = (kind: string, path: string) => kubectl(['get', kind, ...inSystem, '-o', `jsonpath={${path}}`]);
    const deployment = 'deployment/posthorn-delivery-scaled';
    const autoscaler = 'horizontalpodautoscaler/posthorn-delivery-scaled';
    const adapter = await startBacklogAdapter();
    try {
      await kubectlApply([{ apiVersion: 'posthorn.dev/v1alpha1', kind: 'DeliveryPool', metadata, spec }]);
      await kubectl(['wait', '--for=create', deployment, ...inSystem, '--timeout=180s']);
      await kubectl(['wait', '--for=condition=Ready', 'deliverypool/scaled', ...inSystem, '--timeout=180s']);
      expect(await has(deployment, '.spec.replicas')).toBe('1');
      // Two at a time: five a second.
      load.answerMs = 400;
      await load.moveTo('scaled');
      await eventually('three workers', 300_000, async () => (await has(deployment, '.status.readyReplicas')) === '3');
      expect(await has(autoscaler, '.status.currentMetrics[0].external.metric.name')).toBe('posthorn_backlog_messages');
      load.answerMs = 10;
      // Kubernetes waits for five minutes unless configured otherwise.
      await eventually('one worker', 600_000, async () =>
        (await has(deployment, '.spec.replicas')) === '1' && (await podsWith('posthorn.dev/delivery-pool=scaled')).length === 1
          ? true
          : undefined,
      );
      await load.goesOn();
      await load.losesNothing();
      expect(load.repeated.slice(repeatedBefore)).toEqual([]);
    } finally {
      load.answerMs = 100;
      await load.moveTo(null);
      await kubectl(['delete', 'deliverypool/scaled', ...inSystem, '--ignore-not-found', '--wait=true', '--timeout=180s']);
      await adapter.stop();
    }
  }, 1_500_000);

  test('loses none when a worker is killed while the pool grows to three and shrinks again, and delivers twice only what was under way there', async () => {
    const replicas = Number(await kubectl(['get', 'deliverypool/default', ...inSystem, '-o', 'jsonpath={.spec.replicas}']));
    const repeatedBefore = load.repeated.length;
    const repeated = () => load.repeated.slice(repeatedBefore);
    load.cutOff.length = 0;
    load.answerMs = 10_000;
    await eventually('deliveries to be under way', 90_000, () => load.underWay >= 5);
    const [worker = ''] = await workerPods();
    // Killed a second after it is told to end: too soon for answers that take ten. The shortest that a kubelet gives for certain.
    await kubectl(['delete', worker, ...inSystem, '--grace-period=1', '--wait=false']);
    load.answerMs = 300;
    try {
      await eventually('the worker to be killed', 180_000, () => load.cutOff.length > 0);
      const newest = load.newest();
      await scaleTo(3);
      // Leases of the killed one are requeued within 15 seconds.
      await eventually('what was cut off to arrive again', 180_000, () => load.cutOff.every((number) => repeated().includes(number)));
      await scaleTo(replicas);
      await load.losesNothing();
      expect(new Set(repeated()).size).toBe(repeated().length);
      expect(repeated().filter((number) => number > newest)).toEqual([]);
      expect(repeated().length).toBeLessThanOrEqual(load.maxUnderWay);
    } finally {
      await scaleTo(replicas);
    }
  }, 900_000);

  test('continues while its NetworkPolicies are in force, which let through what it does and nothing else', async () => {
    const at = (service: string) => `${service}.posthorn-system.svc`;
    const first = (namespace: string, kind: string, path: string, ...selector: string[]) =>
      kubectl(['get', kind, '-n', namespace, ...selector, '-o', `jsonpath={.items[0].${path}}`]);
    const dnsPod = await first('kube-system', 'pods', 'status.podIP', '-l', 'k8s-app=kube-dns');
    const [redis, api, senders, metrics, kubernetes, stranger] = [
      `${at('posthorn-redis')}:6379`,
      `${at('posthorn-api')}:80`,
      `${at('posthorn-ingest')}:80`,
      `${at('posthorn-delivery-default')}:9090`,
      'kubernetes.default.svc:443',
      `${dnsPod}:8080`,
    ];
    const places: readonly (readonly [pod: string, open: readonly string[], shut: readonly string[]])[] = [
      ['deployment/posthorn-controller', [redis, kubernetes], [stranger, load.receiver]],
      ['deployment/posthorn-api', [redis, kubernetes], [stranger, load.receiver]],
      ['deployment/posthorn-ingest', [redis], [kubernetes, api, stranger, load.receiver]],
      [workers, [redis, load.receiver], [stranger]],
      ['pod/sender', [api, senders, metrics, stranger], [redis]],
    ];
    const reached = async (): Promise<boolean[][]> =>
      Promise.all(
        places.map(async ([pod, open, shut]) =>
          Object.values(await opened(pod === 'pod/sender' ? load.namespace : 'posthorn-system', pod, [...open, ...shut])),
        ),
      );
    const apiServerPort = await first('default', 'endpointslices', 'ports[0].port', '-l', 'kubernetes.io/service-name=kubernetes');
    const values = (ports: string) => ['--reset-then-reuse-values', '--set', `networkPolicies.apiServerPorts={${ports}}`];
    await helm('upgrade', 'posthorn', deployedChart(), ...inSystem, ...values(apiServerPort));
    await eventually('the policy of the workers to know the receiver', 180_000, async () => {
      const policy = await kubectl(['get', 'networkpolicy/posthorn-delivery-default', ...inSystem, '-o', 'json']);
      return policy.includes(`${load.receiver.split(':')[0]}/32`);
    });
    if (process.env['POSTHORN_E2E_AUDIT_LOG'] !== undefined) expect((await reached()).flat()).not.toContain(false);
    const end = await enforcePolicies();
    try {
      const expected = places.map(([, open, shut]) => [...open.map(() => true), ...shut.map(() => false)]);
      await eventually('what is let through to be what the policies say', 180_000, async () => {
        expect(await reached()).toEqual(expected);
        return true;
      });
      await load.goesOn(60);
      await load.losesNothing();
    } finally {
      end();
      await helm('upgrade', 'posthorn', deployedChart(), ...inSystem, ...values('443,6443'));
    }
  }, 900_000);

  test('has refused none of them', async () => {
    const { accepted, refused } = await load.end();
    expect(accepted.length).toBeGreaterThan(200);
    expect(refused).toEqual([]);
  }, 300_000);
});
