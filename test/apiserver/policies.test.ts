import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { parseAllDocuments } from 'yaml';
import { type Kind, kindPath } from '../../src/resources/kinds.ts';
import { systemClock } from '../../src/runtime/system-clock.ts';
import type { KubernetesApi } from '../../src/store/kubernetes/kubernetes-api.ts';
import { KubernetesStore } from '../../src/store/kubernetes/kubernetes-store.ts';
import { type ControlPlane, startControlPlane } from '../support/control-plane.ts';
import { eventually } from '../support/eventually.ts';
import { kubernetesApi } from '../support/kubernetes-api.ts';
import { collectionOf, collectionPath } from './api-client.ts';

// biome-ignore lint/suspicious/noExplicitAny: objects of many kinds
type Any = any;

const organizationLabel = 'posthorn.dev/organization';
const release = 'posthorn-system';
let plane: ControlPlane;
let admin: KubernetesApi;
/** Client of a service account that may write Organizations, but not their plan. */
let tenant: KubernetesApi;

beforeAll(async () => {
  plane = await startControlPlane({ controllerManager: true, crds: true });
  admin = kubernetesApi(plane);
  await namespace(release);
  await namespace('acme', { [organizationLabel]: 'acme' });
  await namespace('globex', { [organizationLabel]: 'globex' });
  const tenantRules = [{ apiGroups: ['posthorn.dev'], resources: ['organizations'], verbs: ['get', 'create', 'update', 'patch'] }];
  await apply('/apis/rbac.authorization.k8s.io/v1/clusterroles', {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name: 'tenants' },
    rules: tenantRules,
  });
  tenant = await account('tenant', ['tenants']);
  await expect(write('Destination', httpTo('http://elsewhere.example'), { keep: 'before' })).resolves.toBe('taken');
  await apply('/apis/posthorn.dev/v1alpha1/namespaces/globex/deliverypools', {
    apiVersion: 'posthorn.dev/v1alpha1',
    kind: 'DeliveryPool',
    metadata: { name: 'fast' },
    spec: { replicas: 1 },
  });
  const policies = new URL('../../config/policies/', import.meta.url);
  for (const file of readdirSync(policies))
    for (const document of parseAllDocuments(readFileSync(new URL(file, policies), 'utf8'))) {
      const object: Any = document.toJS();
      await apply(collectionOf(object), object);
    }
  // Refusals of RBAC before it knows the role name neither a host nor a field.
  await eventually('the policies to be in force', 60_000, async () => {
    const host = await write('Destination', httpTo('https://evil.example'));
    const plan = await writeOrganization('later', { plan: 'pro' });
    const listed = await write('Destination', httpTo('https://shop.example.com'));
    return host.includes('the host evil.example') && plan.includes('setting spec.plan') && listed === 'taken';
  });
}, 120_000);
afterAll(async () => {
  await Promise.all([admin?.close(), tenant?.close()]);
  await plane?.stop();
});

async function apply(collection: string, object: Any): Promise<void> {
  const path = `${collection}/${object.metadata.name}?fieldManager=test&force=true`;
  await plane.request('PATCH', path, object, 'application/apply-patch+yaml');
}

const namespace = (name: string, labels: Record<string, string> = {}) =>
  apply('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } });

/** A service account with ClusterRoles of these names. */
async function account(name: string, roles: string[]): Promise<KubernetesApi> {
  const accounts = `/api/v1/namespaces/${release}/serviceaccounts`;
  await apply(accounts, { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name } });
  for (const role of roles)
    await apply('/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name: `${name}-${role}` },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
      subjects: [{ kind: 'ServiceAccount', name, namespace: release }],
    });
  const asked = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} };
  const made: Any = await plane.request('POST', `${accounts}/${name}/token`, asked);
  return kubernetesApi({ ...plane, kubeconfigPath: plane.writeKubeconfig({ token: made.status.token }) });
}

const httpTo = (url: string): object => ({ http: { url } });

interface Writing {
  within?: string;
  /** The name of what stays; else it is a dry run. */
  keep?: string;
}

/** What the store makes of a write: `taken`, or the code and the text of the refusal. */
async function write(kind: Kind, spec: object, { within = 'acme', keep }: Writing = {}): Promise<string> {
  const object = { kind, apiVersion: kindPath(kind).apiVersion, metadata: { name: keep ?? 'tried', namespace: within }, spec };
  const query = `?fieldManager=test&force=true${keep === undefined ? '&dryRun=All' : ''}`;
  return verdict(admin, `${collectionPath(kind, within)}/${object.metadata.name}${query}`, object);
}

function writeOrganization(name: string, fields: object, { by = tenant, keeps = false } = {}): Promise<string> {
  const object = {
    apiVersion: 'posthorn.dev/v1alpha1',
    kind: 'Organization',
    metadata: { name },
    spec: { namespace: name, ...fields },
  };
  const query = `?fieldManager=test&force=true${keeps ? '' : '&dryRun=All'}`;
  return verdict(by, `/apis/posthorn.dev/v1alpha1/organizations/${name}${query}`, object);
}

async function verdict(api: KubernetesApi, path: string, body: object): Promise<string> {
  try {
    await api.request('PATCH', path, { body, contentType: 'application/apply-patch+yaml' });
    return 'taken';
  } catch (error) {
    return `${(error as Any).code} ${(error as Error).message}`;
  }
}

const s3 = { type: 's3', s3: { bucket: 'history', region: 'eu-west-1' }, warehouse: { identity: 'platform' } };
const cron = (url: string) => ({ schedule: '0 * * * *', url });
const secret = { name: 'a', key: 'b' };
const r2 = (host: string) => ({
  type: 'r2',
  r2: { bucket: 'history', endpoint: `https://${host}`, accessKeyId: 'a', secretAccessKeySecretRef: secret },
});
const endpoint = (url: string) => ({ applicationRef: { name: 'a' }, url, signingSecretRef: secret });

describe('hosts that organizations may deliver to', () => {
  test.each<[string, Kind, object]>([
    ['a host under a pattern', 'Destination', httpTo('https://shop.example.com/a?b#c')],
    ['one deep under it, with a port, in capitals and with a dot at its end', 'Destination', httpTo('http://A.B.EXAMPLE.com.:8080')],
    ["the organization's own host", 'Destination', httpTo('https://hooks.acme.example')],
    ['a bucket of an endpoint that is listed', 'Destination', r2('r2.example.com')],
    ['a cron job', 'HttpCronJob', cron('https://shop.example.com')],
    ['an alert by e-mail, which names no host', 'NotificationChannel', { type: 'email', email: { addresses: ['a@elsewhere.example'] } }],
    ['an alert', 'NotificationChannel', { type: 'webhook', webhook: { url: 'https://shop.example.com' } }],
    ['an endpoint', 'WebhookEndpoint', endpoint('https://shop.example.com')],
  ])('hosts that organizations may deliver to take %s', async (_, kind, spec) => {
    expect(await write(kind, spec)).toBe('taken');
  });

  test.each<[string, Kind, object, string, string?]>([
    ['another host', 'Destination', httpTo('https://elsewhere.example'), 'elsewhere.example'],
    ['the end of a pattern alone', 'Destination', httpTo('https://example.com'), 'example.com'],
    ['a name that only ends alike', 'Destination', httpTo('https://badexample.com'), 'badexample.com'],
    ['a listed host behind a fragment', 'Destination', httpTo('https://elsewhere.example#.example.com'), 'elsewhere.example'],
    ['a listed host in the query', 'Destination', httpTo('https://elsewhere.example?a=://shop.example.com'), 'elsewhere.example'],
    ['an address', 'Destination', httpTo('http://[2001:db8::1]:80/'), '[2001:db8::1]'],
    ["another organization's host", 'Destination', httpTo('https://hooks.acme.example'), 'hooks.acme.example', 'globex'],
    ['a namespace of no organization yet', 'Destination', httpTo('https://hooks.acme.example'), 'hooks.acme.example', 'default'],
    ['a bucket of Amazon', 'Destination', s3, 's3.eu-west-1.amazonaws.com'],
    ['a bucket elsewhere', 'Destination', r2('r2.elsewhere.example'), 'r2.elsewhere.example'],
    ['a cron job', 'HttpCronJob', cron('https://elsewhere.example'), 'elsewhere.example'],
    ['an endpoint', 'WebhookEndpoint', endpoint('https://elsewhere.example'), 'elsewhere.example'],
    ['an alert', 'NotificationChannel', { type: 'webhook', webhook: { url: 'https://elsewhere.example' } }, 'elsewhere.example'],
    ['Slack', 'NotificationChannel', { type: 'slack', slack: { webhookUrlSecretRef: secret } }, 'hooks.slack.com'],
    ['PagerDuty', 'NotificationChannel', { type: 'pagerduty', pagerduty: { routingKeySecretRef: secret } }, 'events.pagerduty.com'],
    ['Teams', 'NotificationChannel', { type: 'teams', teams: { webhookUrlSecretRef: secret } }, 'channels of type teams'],
  ])('refuse %s, and say which', async (_, kind, spec, named, within = 'acme') => {
    const answer = await write(kind, spec, { within });
    expect(answer).toMatch(/^FORBIDDEN /);
    expect(answer).toContain(named);
  });

  test('hosts that organizations may deliver to leave what is stored alone until its spec is changed, and let it be deleted', async () => {
    const path = `${collectionPath('Destination', 'acme')}/before`;
    await plane.request('PATCH', path, { metadata: { labels: { a: 'b' } } }, 'application/merge-patch+json');
    const change = { spec: { http: { method: 'PUT' } } };
    await expect(plane.request('PATCH', path, change, 'application/merge-patch+json')).rejects.toThrow('elsewhere.example');
    await plane.request('DELETE', path);
  });

  test('hosts that organizations may deliver to are all with the pattern *, and Teams with allowTeams', async () => {
    const path = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/posthorn-egress-hosts';
    const policy: Any = await plane.request('GET', path);
    const lists: Record<string, string> = { allowedHostsByOrganization: '{"globex":["*"]}', allowsTeams: 'true' };
    for (const variable of policy.spec.variables) variable.expression = lists[variable.name] ?? variable.expression;
    await plane.request('PUT', path, policy);
    const teams = { type: 'teams', teams: { webhookUrlSecretRef: secret } };
    await eventually('the list to be read', 30_000, async () => (await write('NotificationChannel', teams)) === 'taken');
    expect(await write('Destination', s3, { within: 'globex' })).toBe('taken');
    expect(await write('Destination', s3)).toMatch(/^FORBIDDEN /);
  });

  test('hosts that organizations may deliver to are refused in the words of the policy alone by the store that API and controllers use', async () => {
    const store = new KubernetesStore({ api: admin, clock: systemClock });
    const object = { kind: 'Destination', metadata: { namespace: 'acme', name: 'a' }, spec: httpTo('https://elsewhere.example') } as const;
    await expect(store.apply(object, { manager: 'posthorn-api' })).rejects.toMatchObject({
      code: 'FORBIDDEN',
      message: 'the host elsewhere.example is not among those that the organization acme may deliver to',
    });
  });
});

describe('who may set the plan of an organization', () => {
  const egress = { allowedCidrs: ['10.0.0.0/8'] };
  const limits = { monthlyMessages: 1_000_000 };

  test('an account without the right makes organizations of the plan free, without limits of their own and egress', async () => {
    expect(await writeOrganization('a', { plan: 'free' })).toBe('taken');
    expect(await writeOrganization('a', {})).toMatch(/^FORBIDDEN .*spec.plan/);
    expect(await writeOrganization('a', { plan: 'pro' })).toMatch(/^FORBIDDEN .*organizations\/plan/);
    expect(await writeOrganization('a', { plan: 'free', limits })).toMatch(/^FORBIDDEN .*spec.limits/);
    expect(await writeOrganization('a', { plan: 'free', egress })).toMatch(/^FORBIDDEN .*organizations\/egress/);
  });

  test('it changes everything else of one, and neither raises its plan nor removes its limits', async () => {
    expect(await writeOrganization('shop', { plan: 'pro', limits, egress }, { by: admin, keeps: true })).toBe('taken');
    expect(await writeOrganization('shop', { plan: 'pro', limits, egress, name: 'The shop' })).toBe('taken');
    expect(await writeOrganization('shop', { plan: 'business', limits, egress })).toMatch(/^FORBIDDEN /);
    expect(await writeOrganization('shop', { plan: 'pro', limits: { ...limits, monthlyMessages: 7 }, egress })).toMatch(/^FORBIDDEN /);
    expect(await writeOrganization('shop', { plan: 'pro', egress })).toMatch(/^FORBIDDEN /);
    expect(await writeOrganization('shop', { plan: 'pro', limits, egress: { allowedHosts: ['a'] } })).toMatch(/^FORBIDDEN /);
  });

  test('an account with the ClusterRole may', async () => {
    const platform = await account('platform', ['tenants', 'posthorn-organization-plans']);
    const written = () => writeOrganization('a', { plan: 'enterprise', limits, egress }, { by: platform });
    // A role counts a moment after it is bound.
    await eventually(async () => expect(await written()).toBe('taken'));
    await platform.close();
  });
});

describe('labels of namespaces', () => {
  const labelled = (by: KubernetesApi, name: string, labels: Record<string, string>): Promise<string> =>
    verdict(by, `/api/v1/namespaces/${name}?fieldManager=labels&force=true&dryRun=All`, {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name, labels },
    });
  let team: KubernetesApi;
  beforeAll(async () => {
    await apply('/apis/rbac.authorization.k8s.io/v1/clusterroles', {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: 'namespaces' },
      rules: [{ apiGroups: [''], resources: ['namespaces'], verbs: ['get', 'create', 'update', 'patch'] }],
    });
    [team, other] = await Promise.all([account('team', ['namespaces']), account('owner', ['namespaces', 'tenants'])]);
    await eventually(async () => expect(await labelled(team, 'acme', { team: 'a' })).toBe('taken'));
  });
  let other: KubernetesApi;
  afterAll(async () => {
    await Promise.all([team.close(), other.close()]);
  });

  test.each([
    ['takes a namespace out of the policies of its installation', 'acme', { 'posthorn.dev/installation': 'other' }],
    ['takes a namespace into the policies of another organization', 'acme', { [organizationLabel]: 'globex' }],
    ['makes a namespace of an organization', 'new', { [organizationLabel]: 'acme' }],
    ['protects a namespace', 'acme', { 'posthorn.dev/protected': 'true' }],
  ])('who may label namespaces and not create Organizations is refused one that %s; who may do both is not', async (_, name, labels) => {
    expect(await labelled(team, name, labels)).toMatch(/^FORBIDDEN .*by the controllers and by those who may create Organizations/s);
    await eventually(async () => expect(await labelled(other, name, labels)).toBe('taken'));
  });

  test('other labels and namespaces without these labels are left to everybody', async () => {
    expect(await labelled(team, 'acme', { colour: 'red' })).toBe('taken');
    expect(await labelled(team, 'plain', {})).toBe('taken');
  });
});

test('a DeliveryPool is refused in any namespace but that of the controllers, which the message names, and one that is there already stays', async () => {
  const pool = (replicas: number) => ({ apiVersion: 'posthorn.dev/v1alpha1', kind: 'DeliveryPool', spec: { replicas } });
  const put = (namespaceOfPool: string, replicas = 1) =>
    apply(`/apis/posthorn.dev/v1alpha1/namespaces/${namespaceOfPool}/deliverypools`, { ...pool(replicas), metadata: { name: 'fast' } });
  for (const each of ['acme', 'default'])
    await expect(put(each)).rejects.toThrow(
      `DeliveryPool fast needs metadata.namespace ${release}, that of the controllers: in ${each} no workers would come of it`,
    );
  await put(release);
  await put('globex', 2);
});

test('the API server finds no fault in the types of the expressions', async () => {
  const path = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies';
  const policies = await eventually('the expressions to be checked', 30_000, async () => {
    const { items }: Any = await plane.request('GET', path);
    return items.every(({ status }: Any) => status?.typeChecking !== undefined) ? items : undefined;
  });
  expect(policies.flatMap(({ status }: Any) => status.typeChecking.expressionWarnings ?? [])).toEqual([]);
});
