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

/** What kubeconform says of these manifests. */
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

describe.each(['defaults', 'production', 'gateway'])('with the values %s', (name) => {
  let text: string;
  let objects: Manifest[];
  beforeAll(async () => {
    objects = manifests(await template('--values', valuesFile(name)));
    // Of policies there is no schema here; the API server of install.test.ts takes them.
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

  test('pods run as the restricted PodSecurity standard asks, with a read-only root', () => {
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

// biome-ignore lint/suspicious/noExplicitAny: objects of many kinds
type Any = any;

function podSpecs(spec: Any): Any[] {
  return spec?.template?.spec === undefined ? [] : [spec.template.spec];
}

test('an API pod goes on to answer while proxies still send to it, and has its whole time to drain after that', async () => {
  const objects: Any[] = manifests(await template('--set', 'drainSeconds=40'));
  const api = objects.find(({ kind, metadata }) => kind === 'Deployment' && metadata.name === 'posthorn-api').spec.template.spec;
  expect(api.containers[0].lifecycle).toEqual({ preStop: { sleep: { seconds: 5 } } });
  expect(api.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(40 + 5 + 5);
});

describe('the pods of a role', () => {
  const affinityOf = async (...args: string[]): Promise<Any> => {
    const objects: Any[] = manifests(await template(...args));
    return objects.find(({ kind, metadata }) => kind === 'Deployment' && metadata.name === 'posthorn-api').spec.template.spec.affinity;
  };
  const apart = { weight: 100, podAffinityTerm: { topologyKey: 'kubernetes.io/hostname', matchLabelKeys: ['pod-template-hash'] } };
  const preferring = (...terms: object[]) => ({ podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: terms } });

  test('rather stand on several nodes, also where these have no zones, beside what else is preferred', async () => {
    expect(await affinityOf()).toMatchObject(preferring(apart));
    const own = { weight: 1, podAffinityTerm: { topologyKey: 'rack' } };
    const given = { ...preferring(own), nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [] } } };
    expect(await affinityOf('--set-json', `api.affinity=${JSON.stringify(given)}`)).toMatchObject({ ...given, ...preferring(own, apart) });
  });

  test('are not moved apart by a preference where that is strict or not wanted', async () => {
    for (const spread of ['DoNotSchedule', 'Off']) expect(await affinityOf('--set', `topologySpread.hostname=${spread}`)).toBeUndefined();
  });
});

describe('the rights in Kubernetes', () => {
  const inRepository = ['controller', 'api'].flatMap((name) =>
    parseAllDocuments(readFileSync(`${root}config/rbac/${name}.yaml`, 'utf8')).map((document): Any => document.toJS()),
  );

  test('are those of config/rbac', async () => {
    const objects = manifests(await template());
    for (const wanted of inRepository.filter(({ kind }) => kind.endsWith('Role'))) {
      const found = objects.find(({ kind, metadata }) => kind === wanted.kind && metadata.name === wanted.metadata.name);
      expect(found?.['rules']).toEqual(wanted.rules);
    }
  });

  test('are those of controllers, API and the job that uninstalls: workers have none', async () => {
    const objects: Any[] = manifests(await template());
    const bound = objects
      .filter(({ kind }) => kind.endsWith('RoleBinding'))
      .flatMap(({ subjects }) => subjects.map(({ name }: Any) => name));
    expect([...new Set(bound)].sort()).toEqual(['posthorn-api', 'posthorn-controller', 'posthorn-uninstall']);
  });
});

describe('the cluster policies', () => {
  const policies = 'policies.egressHosts.enabled=true,policies.organizationPlans.enabled=true';
  const file = (name: string): Any[] =>
    parseAllDocuments(readFileSync(`${root}config/policies/${name}.yaml`, 'utf8')).map((document) => document.toJS());

  test('are off by default', async () => {
    expect(manifests(await template()).filter(({ kind }) => kind.startsWith('ValidatingAdmission'))).toEqual([]);
  });

  test('are those of config/policies', async () => {
    const lists = 'policies.egressHosts.hosts={*.example.com},policies.egressHosts.organizations.acme={hooks.acme.example}';
    const objects: Any[] = manifests(await template('--set', policies, '--set', lists));
    for (const wanted of [...file('egress-hosts'), ...file('organization-plans')]) {
      const found = objects.find(({ kind, metadata }) => kind === wanted.kind && metadata.name === wanted.metadata.name);
      expect(found?.metadata.namespace).toBe(wanted.metadata.namespace);
      for (const part of ['spec', 'rules', 'roleRef', 'subjects', 'data']) expect(found?.[part]).toEqual(wanted[part]);
    }
  });
});

describe('values that cannot be meant', () => {
  test.each([
    ['a name that is not known', 'replicas=3', 'replicas'],
    ['one below a known name', 'api.replica=3', 'replica'],
    ['a wrong type', 'api.replicas=many', 'api/replicas'],
    ['an Ingress without a host', 'ingress.enabled=true', 'ingress/host'],
    ['an HTTPRoute without a Gateway', 'httpRoute.enabled=true', 'httpRoute/parentRefs'],
    ['sentinels without their addresses', 'redis.mode=sentinel', 'redis'],
    ['a host with a path', 'policies.egressHosts.hosts={a.example/b}', 'policies/egressHosts/hosts'],
    ['two addresses of Redis', 'redis.url=redis://a,redis.existingSecret=b', 'redis'],
    ['alerts by e-mail without a sender', 'smtp.host=mail', 'smtp/from'],
  ])('are refused: %s', async (_, values, named) => {
    await expect(template('--set', values)).rejects.toThrow(new RegExp(`values don't meet the specifications[\\s\\S]*${named}`));
  });
});
