import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { crdFor } from '../../src/resources/custom-resource-definitions.ts';
import { eventually } from '../support/eventually.ts';
import { helm } from '../support/helm.ts';
import { describeInCluster } from '../support/in-cluster.ts';
import { type PortForward, portForward } from '../support/port-forward.ts';
import { addressOfThisMachine } from './cluster-world.ts';
import { firingAlerts, PodOps, type Sample } from './installation-state.ts';
import { kubectl, kubectlApply } from './kubectl.ts';
import { Shop } from './manifests.ts';
import { ingest, RestClient } from './rest.ts';
import {
  areReady,
  inSystem,
  noneIsReady,
  patienceMs,
  putSecret,
  redisCli,
  releaseRevision,
  restart,
  rolledOut,
  secretValue,
  system,
  upgrade,
  upgradeFails,
} from './system-commands.ts';

const apiVersion = 'posthorn.dev/v1alpha1';
const deployments = ['posthorn-api', 'posthorn-ingest', 'posthorn-controller'];
const shop = new Shop(`broken-${randomBytes(3).toString('hex')}`);
const receiver = addressOfThisMachine();

interface Failure {
  make(): Promise<unknown>;
  mend(): Promise<unknown>;
  /** Cells of the table that are shown while it is broken. */
  shows(): Promise<unknown>;
  /** `is`: of one series; absent: the sum of all of them is larger than before the failure. */
  metric?: { name: string; labels: RegExp; is?(value: number): boolean };
  alerts?: readonly string[];
  /** What happens between two scrapes. */
  meanwhile?(): Promise<unknown>;
}

const object = (kind: string, name: string, spec: object) => ({ apiVersion, kind, metadata: { name, namespace: shop.name }, spec });
const inShop = (...args: string[]) => kubectl(['-n', shop.name, ...args]);
const condition = (what: string, type: string): Promise<string> =>
  inShop('get', what, '-o', `jsonpath={.status.conditions[?(@.type=="${type}")].status} {.status.conditions[?(@.type=="${type}")].reason}`);
const says = (what: string, type: string, expected: string): Promise<void> =>
  eventually(async () => expect(await condition(what, type)).toBe(expected), patienceMs);
const hasWarning = (reason: string): Promise<void> =>
  eventually(
    async () =>
      expect(await inShop('get', 'events', '--field-selector', `reason=${reason}`, '-o', 'jsonpath={.items[*].type}')).toContain('Warning'),
    patienceMs,
  );
const saysNotReady = (component: 'api' | 'ingest' | 'controller' | 'delivery', pattern: RegExp): Promise<void> =>
  eventually(async () => {
    const said = await pods.readyz(component);
    expect(said.length).toBeGreaterThan(0);
    for (const each of said) expect(each).toMatch(pattern);
  }, patienceMs);
const notReady = (kind: string) => ({
  name: 'posthorn_objects',
  labels: new RegExp(`kind="${kind}",state="not_ready"`),
});
/** What a destination with a False condition shows. */
const destinationNotReady = (name: string, type: string, reason: string): Omit<Failure, 'make' | 'mend'> => ({
  shows: async () => {
    await says(`destination/${name}`, type, `False ${reason}`);
    await hasWarning(reason);
  },
  metric: notReady('Destination'),
  alerts: ['PosthornObjectsNotReady'],
});
const failing = (check: string) => ({
  name: 'posthorn_readiness',
  labels: new RegExp(`check="${check}"`),
  is: (value: number) => value === 0,
});

let pods: PodOps;
let forwards: PortForward[] = [];
/** Of the API and of ingest, anew after their pods have changed. */
async function urls(): Promise<{ api: RestClient; ingestUrl: string }> {
  await Promise.all(forwards.map((forward) => forward.stop()));
  forwards = await Promise.all(['api', 'ingest'].map((role) => portForward(system, `service/posthorn-${role}`, 80)));
  const [api, senders] = forwards.map(({ port }) => `http://127.0.0.1:${port}`);
  return { api: new RestClient(api ?? '', shop.apiKey), ingestUrl: senders ?? '' };
}

async function sendEvent(source: string): ReturnType<typeof ingest> {
  const { ingestUrl } = await urls();
  return ingest(ingestUrl, `${shop.name}/${source}`, { headers: { 'content-type': 'application/json' }, body: Buffer.from('{}') });
}
/** Goes to no route: an event that is accepted before Redis is full opens no circuit. */
async function refusedEvent(): Promise<void> {
  const { status, body } = await sendEvent('unrouted');
  expect([status, body['code']]).toEqual([503, 'UNAVAILABLE']);
}

let redisPassword: string;
let redisMemory: string;
let encryptionKeys: string;
/** Of the release before an upgrade that fails. */
let revision: string;
const encrypted = ['posthorn-api', 'posthorn-controller'];

const failures: Record<string, Failure> = {
  'the pool of an organization does not exist': {
    make: () => kubectl(['patch', 'organization', shop.name, '--type=merge', '-p', '{"spec":{"deliveryPool":"nowhere"}}']),
    mend: () => kubectl(['patch', 'organization', shop.name, '--type=json', '-p', '[{"op":"remove","path":"/spec/deliveryPool"}]']),
    shows: () => says(`organization/${shop.name}`, 'ResolvedRefs', 'False DeliveryPoolNotFound'),
    metric: notReady('Organization'),
    alerts: ['PosthornObjectsNotReady'],
  },
  'the pool `default` is deleted': {
    make: () => inSystem('delete', 'deliverypool', 'default', '--timeout=60s'),
    mend: async () => {},
    shows: async () => {
      await inSystem('wait', 'deliverypool/default', '--for=create', '--timeout=60s');
      await inSystem('wait', 'deliverypool/default', '--for=condition=Ready', '--timeout=90s');
    },
  },
  'values are refused': {
    make: async () => {},
    mend: async () => {},
    shows: async () => {
      const generations = () => inSystem('get', 'deployments', '-o', 'jsonpath={.items[*].metadata.generation}');
      const before = await generations();
      await expect(upgrade('--set', 'delivery.replicas=-1')).rejects.toThrow(/replicas/);
      await expect(upgrade('--set', 'organization.slug=No Slug')).rejects.toThrow(/slug/);
      expect(await generations()).toBe(before);
    },
  },
  'the password of Redis is wrong': {
    make: async () => {
      await redisCli('CONFIG', 'SET', 'requirepass', 'another');
      await inSystem(
        'exec',
        'statefulset/posthorn-redis',
        '--',
        'env',
        'REDISCLI_AUTH=another',
        'redis-cli',
        'CLIENT',
        'KILL',
        'TYPE',
        'normal',
      );
    },
    mend: () =>
      inSystem(
        'exec',
        'statefulset/posthorn-redis',
        '--',
        'env',
        'REDISCLI_AUTH=another',
        'redis-cli',
        'CONFIG',
        'SET',
        'requirepass',
        redisPassword,
      ),
    shows: async () => {
      for (const role of ['api', 'ingest', 'controller', 'delivery'] as const) await saysNotReady(role, /WRONGPASS|NOAUTH/);
      await noneIsReady('ingest');
      await upgradeFails();
    },
    metric: failing('redis'),
    alerts: ['PosthornNotReady'],
  },
  'Redis does not answer': {
    make: () => inSystem('scale', 'statefulset/posthorn-redis', '--replicas=0'),
    mend: async () => {
      await upgrade();
      await inSystem('rollout', 'status', 'statefulset/posthorn-redis', '--timeout=90s');
    },
    shows: async () => {
      for (const role of ['api', 'ingest', 'controller', 'delivery'] as const) await saysNotReady(role, /unreachable/);
      await noneIsReady('ingest');
    },
    metric: failing('redis'),
    alerts: ['PosthornNotReady'],
  },
  'Redis is full': {
    make: async () => {
      const used = /used_memory:(\d+)/.exec(await redisCli('INFO', 'memory'))?.[1];
      await redisCli('CONFIG', 'SET', 'maxmemory', String(Math.ceil(Number(used) / 0.95)));
    },
    mend: () => redisCli('CONFIG', 'SET', 'maxmemory', redisMemory),
    shows: () => eventually(refusedEvent, patienceMs),
    metric: { name: 'posthorn_redis_memory_share', labels: /./, is: (value) => value > 0.8 },
    alerts: ['PosthornRedisFillsUp', 'PosthornIngestFails'],
    // The shards hear of it one after the other.
    meanwhile: () => eventually(refusedEvent, patienceMs),
  },
  'Redis evicts keys': {
    make: () => redisCli('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru'),
    mend: () => redisCli('CONFIG', 'SET', 'maxmemory-policy', 'noeviction'),
    shows: async () => {
      await saysNotReady('controller', /redis-settings.*maxmemory-policy/);
      await noneIsReady('controller');
      await upgradeFails();
    },
    metric: failing('redis-settings'),
    alerts: ['PosthornNotReady'],
  },
  'an encryption key is lost': {
    make: async () => {
      const { api } = await urls();
      const made = await api.send('POST', '/api/destinations', {
        name: 'Sealed',
        url: 'https://shop.example/hooks',
        authType: 'bearer',
        authConfig: { token: 'a-long-token-000042' },
      });
      expect(made.status).toBe(201);
      await putSecret('posthorn-encryption', 'POSTHORN_ENCRYPTION_KEYS', `k9:${randomBytes(32).toString('base64')}`);
      await restart(...encrypted);
      await rolledOut(...encrypted);
    },
    mend: async () => {
      await putSecret('posthorn-encryption', 'POSTHORN_ENCRYPTION_KEYS', encryptionKeys);
      await restart(...encrypted);
      await rolledOut(...encrypted);
      await says('destination/sealed', 'ResolvedRefs', 'True ResolvedRefs');
      await inShop('delete', 'destination/sealed');
    },
    shows: async () => {
      await says('destination/sealed', 'ResolvedRefs', 'False SecretNotReadable');
      const { api } = await urls();
      const shown = await api.send('GET', '/api/destinations/sealed');
      expect(shown.body).toMatchObject({ authConfig: { token: '••••' } });
    },
    metric: notReady('Destination'),
    alerts: ['PosthornObjectsNotReady'],
  },
  'a Secret is deleted': {
    make: () => inShop('delete', 'secret', 'signing'),
    mend: () => kubectlApply(shop.secrets),
    ...destinationNotReady('dead', 'ResolvedRefs', 'SecretNotFound'),
  },
  'a destination is forbidden by the egress rules': {
    make: () => kubectlApply([object('Destination', 'forbidden', { type: 'http', http: { url: 'https://10.255.255.1/hooks' } })]),
    mend: () => inShop('delete', 'destination/forbidden'),
    ...destinationNotReady('forbidden', 'Accepted', 'AddressNotAllowed'),
  },
  'a receiver fails': {
    make: async () => {
      expect((await sendEvent('open')).status).toBe(200);
    },
    mend: () => inShop('delete', 'route/open'),
    shows: async () => {
      await says('destination/dead', 'Delivering', 'False CircuitOpen');
      await hasWarning('CircuitOpen');
      expect(await inShop('get', 'prt', 'open')).toMatch(/CIRCUIT[\s\S]*open/);
    },
    metric: { name: 'posthorn_circuits', labels: /state="open"/ },
    alerts: ['PosthornCircuitsOpen'],
  },
  'the autoscaler of a pool gets no metric': {
    make: () =>
      kubectlApply([
        {
          apiVersion,
          kind: 'DeliveryPool',
          metadata: { name: 'scaled', namespace: system },
          spec: { autoscaling: { mode: 'hpa', min: 1, max: 2 } },
        },
      ]),
    mend: () => inSystem('delete', 'deliverypool', 'scaled', '--timeout=90s'),
    shows: () =>
      eventually(async () => {
        const path = 'jsonpath={.status.conditions[?(@.type=="Autoscaling")].status}';
        expect(await inSystem('get', 'deliverypool', 'scaled', '-o', path)).toBe('False');
      }, patienceMs),
    metric: { name: 'posthorn_pool_autoscaling_available', labels: /pool="scaled"/, is: (value) => value === 0 },
    alerts: ['PosthornPoolNotScaling'],
  },
  'the CustomResourceDefinitions are of an earlier release': {
    make: async () => {
      revision = await releaseRevision();
      const path = '/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/description';
      await kubectl([
        'patch',
        'customresourcedefinition',
        'routes.posthorn.dev',
        '--type=json',
        '-p',
        JSON.stringify([{ op: 'remove', path }]),
      ]);
      await restart('posthorn-controller');
    },
    mend: async () => {
      // Else the field would be that of the patch, and Helm would not overwrite it.
      await kubectl(['apply', '--server-side', '--force-conflicts', '-f', '-'], JSON.stringify(crdFor('Route')));
      // The release that failed has the value.
      await helm('rollback', 'posthorn', revision, '--namespace', system);
    },
    shows: async () => {
      await eventually(
        async () => expect((await pods.readyz('controller')).join(' ')).toMatch(/crds.*routes\.posthorn\.dev lacks spec\.description/),
        patienceMs,
      );
      expect(await areReady('controller')).toContain('false');
      await upgradeFails('--set', 'crds.install=false');
    },
    metric: failing('crds'),
    alerts: ['PosthornNotReady'],
  },
};

/** What one machine cannot show. */
const shownElsewhere = ['the clocks of two nodes differ', 'processes of two versions run', 'Redis holds the data of another installation'];

describeInCluster('an installation that is broken', () => {
  beforeAll(async () => {
    pods = await PodOps.open();
    redisMemory = (await redisCli('CONFIG', 'GET', 'maxmemory')).split('\n')[1] ?? '0';
    redisPassword = await secretValue('posthorn-redis-server', 'password');
    encryptionKeys = await secretValue('posthorn-encryption', 'POSTHORN_ENCRYPTION_KEYS');
    await kubectlApply([shop.organization([`${receiver}/32`])]);
    await kubectl(['wait', `organization/${shop.name}`, '--for=condition=Ready', '--timeout=60s']);
    const circuit = { failureThreshold: 1, cooldownSeconds: 600 };
    await kubectlApply([
      ...shop.secrets,
      shop.apiKeyManifest,
      object('Source', 'open', { provider: 'generic' }),
      object('Source', 'unrouted', { provider: 'generic' }),
      // Nothing listens at this port.
      shop.destination('dead', `https://${receiver}:9/hooks`),
      object('Route', 'open', { sourceRef: { name: 'open' }, destinationRefs: [{ name: 'dead' }], circuit }),
    ]);
    await inShop('wait', 'route/open', '--for=condition=Ready', '--timeout=60s');
  }, 180_000);
  afterAll(async () => {
    await Promise.all(forwards.map((forward) => forward.stop()));
    await kubectl(['delete', 'organization', shop.name, '--timeout=60s', '--ignore-not-found']);
    await kubectl(['delete', 'namespace', shop.name, '--wait=false', '--ignore-not-found']);
    await pods.close();
  }, 120_000);

  test('the table of the docs has a row for each failure', () => {
    const page = readFileSync(new URL('../../docs/failures.md', import.meta.url), 'utf8');
    const rows = [...page.matchAll(/^\| ([^|]+) \|/gm)].map(([, title = '']) => title).filter((title) => title !== 'failure');
    expect(rows.sort()).toEqual([...Object.keys(failures), ...shownElsewhere].sort());
  });

  test.each(Object.entries(failures))(
    '%s: it is seen, and is gone after it was mended',
    async (_, { make, mend, shows, metric, alerts = [], meanwhile = async () => {} }) => {
      const sum = (samples: readonly Sample[]): number =>
        samples.reduce(
          (total, { name, labels, value }) => (name === metric?.name && metric.labels.test(labels) ? total + value : total),
          0,
        );
      const isSeen = (samples: readonly Sample[]): boolean =>
        metric === undefined ||
        (metric.is === undefined
          ? sum(samples) > before
          : samples.some(({ name, labels, value }) => name === metric.name && metric.labels.test(labels) && metric.is?.(value)));
      const firing = async (): Promise<string[]> => {
        const first = await pods.scrape();
        await meanwhile();
        return firingAlerts(first, await pods.scrape());
      };
      const first = await pods.scrape();
      const before = sum(first);
      const firedBefore = alerts.length === 0 ? [] : await firingAlerts(first, first);
      try {
        await make();
        await shows();
        await eventually(`${metric?.name} to show it`, patienceMs, async () => isSeen(await pods.scrape()));
        if (alerts.length > 0) expect(await firing()).toEqual(expect.arrayContaining([...alerts]));
      } finally {
        await mend();
      }
      await eventually('the metric to be as before', patienceMs, async () => metric === undefined || !isSeen(await pods.scrape()));
      await rolledOut(...deployments);
      const isNew = (alert: string): boolean => alerts.includes(alert) && !firedBefore.includes(alert);
      if (alerts.length > 0)
        await eventually(async () => {
          const now = await pods.scrape();
          expect((await firingAlerts(now, now)).filter(isNew)).toEqual([]);
        }, patienceMs);
    },
    400_000,
  );
});
