import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { parseAllDocuments } from 'yaml';
import { chart, chartTools, helm, type Manifest, manifests, template } from '../support/helm.ts';

const run = promisify(execFile);
const root = new URL('../../', import.meta.url).pathname;
const valuesFile = (name: string): string => `${root}test/chart/values/${name}.yaml`;
const kubernetesVersions = ['1.30', '1.31', '1.32', '1.33', '1.34', '1.35', '1.36'];

let customSchemas: string;
beforeAll(async () => {
  customSchemas = mkdtempSync(join(tmpdir(), 'posthorn-schemas-'));
  await run(process.execPath, [`${root}hack/object-schemas.ts`, `${root}crds`, customSchemas]);
});
afterAll(() => rmSync(customSchemas, { recursive: true }));

/** The output of kubeconform for these manifests. */
async function conform(text: string, version: string): Promise<string> {
  const file = '{{.ResourceKind}}{{.KindSuffix}}.json';
  const locations = [
    `${chartTools}/schemas/kubernetes/v${version}`,
    `${chartTools}/schemas/gateway-api`,
    `${chartTools}/schemas/prometheus-operator`,
    customSchemas,
  ];
  const child = run(join(chartTools, 'bin/kubeconform'), [
    '-strict',
    '-summary',
    ...locations.flatMap((location) => ['-schema-location', `${location}/${file}`]),
  ]);
  child.child.stdin?.end(text);
  return (await child).stdout;
}

describe.each(['defaults', 'production', 'gateway', 'extras'])('with the values %s', (name) => {
  let text: string;
  let objects: Manifest[];
  beforeAll(async () => {
    objects = manifests(await template('--values', valuesFile(name)));
    // Policies have no schema here; the API server of install.test.ts takes them.
    text = objects.flatMap((object) => (object.kind.startsWith('ValidatingAdmission') ? [] : JSON.stringify(object))).join('\n---\n');
  });

  test('helm lint finds nothing', async () => {
    expect(await helm('lint', '--strict', chart, '--values', valuesFile(name))).toContain('0 chart(s) failed');
  });

  test.each(kubernetesVersions)('every object is what Kubernetes %s, the Gateway API and the Prometheus operator take', async (version) => {
    expect(await conform(text, version)).toContain('Invalid: 0, Errors: 0, Skipped: 0');
  });

  test('no two objects have the same kind and name', () => {
    const ids = objects.map(({ kind, metadata }) => `${kind} ${metadata['namespace']}/${metadata.name}`);
    expect(ids).toEqual([...new Set(ids)]);
  });

  test('pods run as the restricted PodSecurity standard requires, with a read-only root', () => {
    const pods = objects.flatMap(({ kind, spec }) => (kind === 'Pod' ? [spec] : podSpecs(spec)));
    expect(pods.length).toBeGreaterThan(3);
    for (const pod of pods) {
      expect(pod).toMatchObject({ securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } } });
      for (const container of pod.containers)
        expect(container.securityContext).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        });
    }
  });
});

test.each([
  ['podSecurity.runAsUser=null', {}, 'platform'],
  ['podSecurity.runAsUser=1000680000', { runAsUser: 1_000_680_000, runAsGroup: 1_000_680_000, fsGroup: 1_000_680_000 }, '1000680000'],
])('all pods run under that user with %s, those of the workers too', async (value, ids, forWorkers) => {
  const objects = manifests(await template('--set', value));
  const pods = objects.flatMap(({ kind, spec }) => (kind === 'Pod' ? [spec] : podSpecs(spec)));
  expect(pods.length).toBeGreaterThan(3);
  for (const { securityContext } of pods)
    expect(securityContext).toEqual({ runAsNonRoot: true, ...ids, seccompProfile: { type: 'RuntimeDefault' } });
  const controller = objects.find(({ kind, metadata }) => kind === 'Deployment' && metadata.name.endsWith('-controller'));
  expect(podSpecs(controller?.spec)[0].containers[0].env).toContainEqual({ name: 'POSTHORN_DELIVERY_RUN_AS_USER', value: forWorkers });
});

// biome-ignore lint/suspicious/noExplicitAny: objects of many kinds
type Any = any;

function podSpecs(spec: Any): Any[] {
  return spec?.template?.spec === undefined ? [] : [spec.template.spec];
}

const deploymentOf = (objects: Any[], role: string): Any =>
  objects.find(({ kind, metadata }) => kind === 'Deployment' && metadata.name === `posthorn-${role}`);

test.each(['api', 'ingest'])(
  'a pod of %s continues to answer while proxies still send to it, and has its whole time to drain after that',
  async (role) => {
    const pod = deploymentOf(manifests(await template('--set', 'drainSeconds=40')), role).spec.template.spec;
    expect(pod.containers[0].lifecycle).toEqual({ preStop: { sleep: { seconds: 5 } } });
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(40 + 5 + 5);
  },
);

test.each(['defaults', 'production', 'gateway', 'extras'])(
  'with the values %s only the Services of metrics lead to pods that are not ready',
  async (name) => {
    const services: Any[] = manifests(await template('--values', valuesFile(name))).filter(({ kind }) => kind === 'Service');
    const namesOf = (some: Any[]): string[] => some.map(({ metadata }) => metadata.name.replace(/^posthorn-(relay-)?/, '')).sort();
    const leading = services.filter(({ spec }) => spec.publishNotReadyAddresses === true);
    expect(namesOf(leading)).toEqual(['api-metrics', 'controller-metrics', 'ingest-metrics']);
    expect(namesOf(services)).toEqual(expect.arrayContaining(['api', 'ingest']));
  },
);

describe('ingest', () => {
  const renderedWith = async (...args: string[]): Promise<Any[]> =>
    manifests(await template('--values', valuesFile('production'), ...args));
  const backendsOf = (objects: Any[]): Record<string, string> => {
    const ingress = objects.find(({ kind }) => kind === 'Ingress').spec.rules[0].http.paths;
    return Object.fromEntries(ingress.map(({ path, backend }: Any) => [path, backend.service.name]));
  };

  test('has no token of Kubernetes and no role, and its pods get nothing but Redis and the keys that open the secrets of sources', async () => {
    const objects = await renderedWith();
    const pod = deploymentOf(objects, 'ingest').spec.template.spec;
    expect([pod.serviceAccountName, pod.automountServiceAccountToken]).toEqual(['posthorn-ingest', false]);
    const account = objects.find(({ kind, metadata }) => kind === 'ServiceAccount' && metadata.name === 'posthorn-ingest');
    expect(account.automountServiceAccountToken).toBe(false);
    const subjects = objects.flatMap(({ kind, subjects: all }) => (kind.endsWith('RoleBinding') ? all.map(({ name }: Any) => name) : []));
    expect(subjects).not.toContain('posthorn-ingest');
    const [{ env }] = pod.containers;
    expect(env.filter(({ valueFrom }: Any) => valueFrom !== undefined)).toEqual([]);
    const known = [
      'DRAIN_SECONDS',
      'ENCRYPTION_KEYS_FILE',
      'INSTALLATION',
      'LOG_LEVEL',
      'PUBLIC_INGEST_URL',
      'SHARDS',
      'TRUSTED_PROXIES',
    ].map((name) => `POSTHORN_${name}`);
    const names: string[] = env.map(({ name }: Any) => name);
    expect(names.filter((name) => !name.startsWith('POSTHORN_REDIS_')).sort()).toEqual(known);
    expect(pod.volumes.map(({ name }: Any) => name)).toEqual(['encryption', 'redis', 'redis-ca', 'redis-certificate']);
  });

  test('may connect to Redis and DNS only, and is reached on its port of events by whom the values say', async () => {
    const policyIn = (objects: Any[]): Any =>
      objects.find(({ kind, metadata }) => kind === 'NetworkPolicy' && metadata.name === 'posthorn-ingest').spec;
    const ports = (rules: Any[]): unknown[] => rules.map(({ to, ports: all }) => [to !== undefined, all.map(({ port }: Any) => port)]);
    const bundled = policyIn(manifests(await template()));
    expect(ports(bundled.egress)).toEqual([
      [false, [53, 53]],
      [true, ['redis']],
    ]);
    expect(bundled.ingress).toEqual([{ ports: [{ port: 'http', protocol: 'TCP' }] }, { ports: [{ port: 'ops', protocol: 'TCP' }] }]);
    const { ingress } = policyIn(await renderedWith());
    const from = { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'ingress' } } };
    expect(ingress[0].from).toContainEqual(from);
  });

  test('is not where Ingress sends the page to confirm addresses, which is let in where it is required and whose address the workers have', async () => {
    const required = ['--set', 'smtp.requireConfirmation=true,api.publicUrl=https://posthorn.example'];
    const objects = await renderedWith(...required);
    expect(backendsOf(objects)).toEqual({ '/api/': 'posthorn-api', '/ingest/': 'posthorn-ingest', '/mail-confirmation': 'posthorn-api' });
    expect(Object.keys(backendsOf(await renderedWith(...required, '--set', 'ingress.paths={/}')))).toEqual(['/', '/ingest/']);
    const { data } = objects.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === 'posthorn-delivery');
    expect(data).toMatchObject({ POSTHORN_MAIL_CONFIRMATION: 'true', POSTHORN_PUBLIC_URL: 'https://posthorn.example' });
  });

  test('is where Ingress and HTTPRoute send /ingest/, however it is written, and everything else goes to the API', async () => {
    const api = 'posthorn-api';
    const ingest = 'posthorn-ingest';
    expect(backendsOf(await renderedWith())).toEqual({ '/api/': api, '/ingest/': ingest });
    expect(backendsOf(await renderedWith('--set', 'ingress.paths={/}'))).toEqual({ '/': api, '/ingest/': ingest });
    const some = '/api/,/docs,/ingest,/ingest/acme/,/ingested';
    expect(backendsOf(await renderedWith('--set', `ingress.paths={${some}}`))).toEqual({
      '/api/': api,
      '/docs': api,
      '/ingest': ingest,
      '/ingest/acme/': ingest,
      '/ingested': api,
    });
    const routed = (objects: Any[]): unknown =>
      objects
        .find(({ kind }) => kind === 'HTTPRoute')
        .spec.rules.map(({ matches, backendRefs }: Any) => [matches.map(({ path }: Any) => path.value), backendRefs[0]]);
    const gateway = ['--set', 'httpRoute.enabled=true,httpRoute.parentRefs[0].name=public,ingest.service.port=8080'];
    expect(routed(await renderedWith(...gateway))).toEqual([
      [['/api/'], { name: api, port: 80 }],
      [['/ingest/'], { name: ingest, port: 8080 }],
    ]);
    expect(routed(await renderedWith(...gateway, '--set', 'httpRoute.paths={/ingest/}'))).toEqual([
      [['/ingest/'], { name: ingest, port: 8080 }],
    ]);
  });

  test('and the API are below the base path, which Ingress has before each of its paths', async () => {
    const objects = await renderedWith('--set', 'console.basePath=/posthorn,ingress.paths={/api/,/console,/ingest/}');
    expect(backendsOf(objects)).toEqual({
      '/posthorn/api/': 'posthorn-api',
      '/posthorn/console': 'posthorn-api',
      '/posthorn/ingest/': 'posthorn-ingest',
    });
    for (const role of ['api', 'ingest']) {
      const { env } = deploymentOf(objects, role).spec.template.spec.containers[0];
      expect(env).toContainEqual({ name: 'POSTHORN_BASE_PATH', value: '/posthorn' });
    }
  });

  test('and the API show the same address to senders: its own, else that of the API', async () => {
    const shown = (objects: Any[], role: string): unknown =>
      deploymentOf(objects, role).spec.template.spec.containers[0].env.find(({ name }: Any) => name === 'POSTHORN_PUBLIC_INGEST_URL')
        ?.value;
    for (const [args, url] of [
      [[], 'https://in.example.com'],
      [['--set', 'ingest.publicUrl='], 'https://hooks.example.com'],
      [['--set', 'ingest.publicUrl=,api.publicUrl='], undefined],
    ] as const) {
      const objects = await renderedWith(...args);
      expect(['api', 'ingest'].map((role) => shown(objects, role))).toEqual([url, url]);
    }
  });
});

test('the api has a console in the theme and with the views of the values, unless they say that there is none', async () => {
  const consoleOf = async (...args: string[]): Promise<unknown> => {
    const objects: Any[] = manifests(await template(...args));
    const { env } = deploymentOf(objects, 'api').spec.template.spec.containers[0];
    return Object.fromEntries(env.flatMap(({ name, value }: Any) => (/_CONSOLE|_BASE_PATH/.test(name) ? [[name, value]] : [])));
  };
  expect(await consoleOf()).toEqual({});
  expect(await consoleOf('--set', 'console.theme=dark')).toEqual({ POSTHORN_CONSOLE_THEME: 'dark' });
  const views = [{ name: 'Costs "$$"', screen: 'deliveries', search: { where: 'event.data.note == "$(HOME) <b>"' } }];
  // Kubernetes makes one $ of two.
  const given: Any = await consoleOf('--set-json', `console.views=${JSON.stringify(views)}`);
  expect(JSON.parse(given.POSTHORN_CONSOLE_VIEWS.replaceAll('$$', '$'))).toEqual(views);
  expect(await consoleOf('--set', 'console.enabled=false')).toEqual({ POSTHORN_CONSOLE: 'off' });
});

describe('the pods of a role', () => {
  const affinityOf = async (...args: string[]): Promise<Any> => {
    const objects: Any[] = manifests(await template(...args));
    return objects.find(({ kind, metadata }) => kind === 'Deployment' && metadata.name === 'posthorn-api').spec.template.spec.affinity;
  };
  const apart = { weight: 100, podAffinityTerm: { topologyKey: 'kubernetes.io/hostname', matchLabelKeys: ['pod-template-hash'] } };
  const preferring = (...terms: object[]) => ({ podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: terms } });

  test('the pods of a role are preferably on several nodes, also where these have no zones, beside what else is preferred', async () => {
    expect(await affinityOf()).toMatchObject(preferring(apart));
    const own = { weight: 1, podAffinityTerm: { topologyKey: 'rack' } };
    const given = { ...preferring(own), nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [] } } };
    expect(await affinityOf('--set-json', `api.affinity=${JSON.stringify(given)}`)).toMatchObject({ ...given, ...preferring(own, apart) });
  });

  test('the pods of a role are not moved apart by a preference where that is strict or not wanted', async () => {
    for (const spread of ['DoNotSchedule', 'Off']) expect(await affinityOf('--set', `topologySpread.hostname=${spread}`)).toBeUndefined();
  });
});

describe('the rights in Kubernetes', () => {
  const inRepository = ['controller', 'api'].flatMap((name) =>
    parseAllDocuments(readFileSync(`${root}config/rbac/${name}.yaml`, 'utf8')).map((document): Any => document.toJS()),
  );

  test('the rights in Kubernetes are those of config/rbac', async () => {
    const objects = manifests(await template());
    for (const wanted of inRepository.filter(({ kind }) => kind.endsWith('Role'))) {
      const found = objects.find(({ kind, metadata }) => kind === wanted.kind && metadata.name === wanted.metadata.name);
      expect(found?.['rules']).toEqual(wanted.rules);
    }
  });

  test('the rights in Kubernetes are those of controllers, API, the job that uninstalls and the test of the release: workers have none', async () => {
    const objects: Any[] = manifests(await template());
    const bound = objects
      .filter(({ kind }) => kind.endsWith('RoleBinding'))
      .flatMap(({ subjects }) => subjects.map(({ name }: Any) => name));
    expect([...new Set(bound)].sort()).toEqual(['posthorn-api', 'posthorn-controller', 'posthorn-test', 'posthorn-uninstall']);
  });
});

describe('the cluster policies', () => {
  const policies = 'policies.egressHosts.enabled=true,policies.organizationPlans.enabled=true';
  const file = (name: string): Any[] =>
    parseAllDocuments(readFileSync(`${root}config/policies/${name}.yaml`, 'utf8')).map((document) => document.toJS());

  const serviceAccounts = ['secrets', 'bindings', 'namespaces', 'quotas', 'workloads'].map((what) => `service-account-${what}`);
  const policiesIn = (text: string): string[] =>
    manifests(text).flatMap(({ kind, metadata }) => (kind === 'ValidatingAdmissionPolicy' ? [metadata.name] : []));

  test('the cluster policies are off by default, except those that hold the ServiceAccounts of the api and the controller, the ones of pools and of labels of namespaces, and the one that only warns', async () => {
    const byDefault = [...serviceAccounts, 'delivery-pool-namespace', 'namespace-labels', 'literal-credentials'];
    expect(policiesIn(await template()).sort()).toEqual(byDefault.map((name) => `posthorn-${name}`).sort());
    const off = ['serviceAccounts', 'deliveryPools', 'namespaceLabels', 'literalCredentials']
      .map((name) => `policies.${name}.enabled=false`)
      .join(',');
    expect(policiesIn(await template('--set', off))).toEqual([]);
  });

  test('the cluster policies are those of config/policies', async () => {
    const lists = 'policies.egressHosts.hosts={*.example.com},policies.egressHosts.organizations.acme={hooks.acme.example}';
    const objects: Any[] = manifests(await template('--set', policies, '--set', lists));
    for (const wanted of ['egress-hosts', 'organization-plans', 'delivery-pool-namespace', 'namespace-labels', ...serviceAccounts].flatMap(
      file,
    )) {
      const found = objects.find(({ kind, metadata }) => kind === wanted.kind && metadata.name === wanted.metadata.name);
      expect(found?.metadata.namespace).toBe(wanted.metadata.namespace);
      for (const part of ['spec', 'rules', 'roleRef', 'subjects']) expect(found?.[part]).toEqual(wanted[part]);
    }
  });
});

test('workers connect only to the hosts that the cluster policy lists', async () => {
  const onlyHosts = async (...values: string[]): Promise<unknown> => {
    const objects: Any[] = manifests(await template(...values.flatMap((each) => ['--set', each])));
    return objects.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === 'posthorn-delivery')?.data
      .POSTHORN_EGRESS_ONLY_HOSTS;
  };
  const enabled = 'policies.egressHosts.enabled=true';
  const organizations = 'policies.egressHosts.organizations.acme={hooks.acme.example,*.acme.example}';
  expect(await onlyHosts(enabled, 'policies.egressHosts.hosts={*.example.com}', organizations)).toBe(
    '*.example.com,acme/hooks.acme.example,acme/*.acme.example',
  );
  expect([await onlyHosts(enabled), await onlyHosts('policies.egressHosts.hosts={*.example.com}')]).toEqual(['-', undefined]);
});

test.each<[string, string, boolean]>([
  ['an Ingress and no trusted proxies', 'ingress.enabled=true,ingress.host=hooks.example.com', true],
  ['a load balancer and no trusted proxies', 'api.service.type=LoadBalancer', true],
  ['an Ingress and trusted proxies', 'ingress.enabled=true,ingress.host=hooks.example.com,api.trustedProxies={10.0.0.0/8}', false],
  ['nothing in front', 'ingress.enabled=false', false],
])('the notes of the installation warn with %s that clients share one address, or not', async (_, values, warns) => {
  const notes = (await helm('install', 'posthorn', chart, '--dry-run=client', '--namespace', 'posthorn-system', '--set', values)).split(
    '\nNOTES:\n',
  )[1];
  expect(notes?.includes('api.trustedProxies is empty')).toBe(warns);
});

test.each([
  ['as they are', [], 'kubectl -n default apply', 'http://localhost:8081/ingest/default/first'],
  ['with another namespace', ['organization.namespace=shop'], 'kubectl -n shop apply', 'http://localhost:8081/ingest/default/first'],
  ['without an organization', ['organization.create=false,apiKey.create=false'], null, null],
])('the notes of a release wait for the workers and send a first event: values %s', async (_, sets, apply, address) => {
  const notes = (
    await helm('install', 'posthorn', chart, '--namespace', 'posthorn-system', '--dry-run=client', ...sets.flatMap((set) => ['--set', set]))
  ).split('\nNOTES:\n')[1];
  expect(notes).toContain('wait --for=condition=Ready dpool/default');
  if (apply === null || address === null) expect(notes).not.toContain('/ingest/default/');
  else for (const step of [apply, address]) expect(notes).toContain(step);
});
