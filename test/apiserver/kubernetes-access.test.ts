import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { parseAllDocuments } from 'yaml';
import { PosthornError } from '../../src/core/errors.ts';
import { type PoolReport, PoolReports } from '../../src/data/membership/pool-reports.ts';
import { KubernetesCallers } from '../../src/facade/http/kubernetes-callers.ts';
import { KubernetesAccess } from '../../src/store/kubernetes/kubernetes-access.ts';
import type { KubernetesApi } from '../../src/store/kubernetes/kubernetes-api.ts';
import { type FacadeWorld, startFacadeWorld } from '../facade/facade-world.ts';
import { type ControlPlane, startControlPlane } from '../support/control-plane.ts';
import { eventually } from '../support/eventually.ts';
import { kubernetesApi } from '../support/kubernetes-api.ts';
import { stoppedClock } from '../support/lenient-clock.ts';
import { isAllowed } from './subject-access.ts';

let controlPlane: ControlPlane;
let api: KubernetesApi;
let world: FacadeWorld;
/** Reviews that the API server received. */
let reviews: string[] = [];
let isAway = false;

beforeAll(async () => {
  controlPlane = await startControlPlane();
  await controlPlane.request('POST', '/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'posthorn-system' } });
  api = kubernetesApi(controlPlane);
  const roles = parseAllDocuments(readFileSync(new URL('../../config/rbac/users/cluster-roles.yaml', import.meta.url), 'utf8'));
  for (const role of roles) await controlPlane.request('POST', '/apis/rbac.authorization.k8s.io/v1/clusterroles', role.toJS());
  const counting: Pick<KubernetesApi, 'request'> = {
    request: async (method, path, options) => {
      reviews.push(path);
      if (isAway) throw new PosthornError('UNAVAILABLE', 'the API server does not answer');
      return api.request(method, path, options);
    },
  };
  // The limit of guesses refills every second, and a slow machine needs longer for the answers.
  world = await startFacadeWorld({
    clock: stoppedClock(),
    kubernetesAccess: new KubernetesAccess({ api: counting, audiences: ['posthorn', 'webhooks'] }),
    trustedProxies: ['127.0.0.0/8'],
  });
  await world.addOrganization('globex');
  for (const namespace of ['acme', 'globex', 'elsewhere'])
    await controlPlane.request('POST', '/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
}, 120_000);
afterAll(async () => {
  await world.stop();
  await api.close();
  await controlPlane.stop();
});

async function isGranted(user: string, namespace: string): Promise<void> {
  const wish = { namespace, group: 'posthorn.dev', resource: 'filters', verb: 'list' };
  await eventually(async () => expect(await isAllowed(controlPlane, user, wish)).toBe(true));
}

/** A service account with a role in some namespaces; returns its token. */
async function account(
  namespace: string,
  name: string,
  { role, within = [namespace], audience = 'posthorn' }: { role?: string; within?: string[]; audience?: string } = {},
): Promise<string> {
  const accounts = `/api/v1/namespaces/${namespace}/serviceaccounts`;
  await controlPlane.request('POST', accounts, { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name } });
  for (const bound of role === undefined ? [] : within) {
    await controlPlane.request('POST', `/apis/rbac.authorization.k8s.io/v1/namespaces/${bound}/rolebindings`, {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'RoleBinding',
      metadata: { name },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
      subjects: [{ kind: 'ServiceAccount', name, namespace }],
    });
    await isGranted(`system:serviceaccount:${namespace}:${name}`, bound);
  }
  const answer = await controlPlane.request('POST', `${accounts}/${name}/token`, {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: { audiences: [audience], expirationSeconds: 600 },
  });
  return (answer as { status: { token: string } }).status.token;
}
const statusOf = async (method: string, path: string, key: string, body?: object): Promise<number> =>
  (await world.request(method, path, { key, ...(body !== undefined && { body }) })).status;
const filter = (name: string) => ({ name, conditions: [{ field: 'payload.a', operator: 'exists' }] });

test.each([
  ['posthorn-viewer', { list: 200, create: 403, remove: 403, keys: 403 }],
  ['posthorn-developer', { list: 200, create: 201, remove: 204, keys: 403 }],
  ['posthorn-admin', { list: 200, create: 201, remove: 204, keys: 201 }],
])(
  'a service account with the ClusterRole %s in the namespace of its organization may do what an API key of that role may',
  async (role, may) => {
    const token = await account('acme', role, { role });
    expect(await statusOf('GET', '/api/filters', token)).toBe(may.list);
    expect(await statusOf('GET', '/api/organizations/acme/filters', token)).toBe(may.list);
    expect(await statusOf('POST', '/api/filters', token, filter(role))).toBe(may.create);
    if (may.create === 403) expect(await statusOf('POST', '/api/filters', world.admin, filter(role))).toBe(201);
    expect(await statusOf('DELETE', `/api/filters/${role}`, token)).toBe(may.remove);
    expect(await statusOf('POST', '/api/api-keys', token, { name: role, role: 'viewer' })).toBe(may.keys);
  },
);

test('an account without rights, or of a namespace that is no organization, finds nothing', async () => {
  const outsider = await account('elsewhere', 'outsider', { role: 'posthorn-admin' });
  expect(await statusOf('GET', '/api/filters', outsider)).toBe(404);
  expect(await statusOf('GET', '/api/organizations/acme/filters', outsider)).toBe(404);
  expect(await statusOf('GET', '/api/filters', await account('acme', 'nobody'))).toBe(404);
});

/** Lets an account of the namespace acme list the DeliveryPools of the installation. */
async function makeOperator(name: string): Promise<void> {
  const [rbac, apiGroup] = ['/apis/rbac.authorization.k8s.io/v1/namespaces/posthorn-system', 'rbac.authorization.k8s.io'];
  await controlPlane.request('POST', `${rbac}/roles`, {
    apiVersion: `${apiGroup}/v1`,
    kind: 'Role',
    metadata: { name },
    rules: [{ apiGroups: ['posthorn.dev'], resources: ['deliverypools'], verbs: ['list'] }],
  });
  await controlPlane.request('POST', `${rbac}/rolebindings`, {
    apiVersion: `${apiGroup}/v1`,
    kind: 'RoleBinding',
    metadata: { name },
    roleRef: { apiGroup, kind: 'Role', name },
    subjects: [{ kind: 'ServiceAccount', name, namespace: 'acme' }],
  });
}

test('an account sees the installation as soon as it may list the DeliveryPools of its namespace, whatever its rights in organizations', async () => {
  const [token, admin] = [
    await account('acme', 'platform', { role: 'posthorn-viewer' }),
    await account('acme', 'tenant', { role: 'posthorn-admin' }),
  ];
  const refused = await world.request('GET', '/api/installation', { key: token });
  expect([refused.status, refused.text]).toEqual([
    403,
    expect.stringContaining('list deliverypools.posthorn.dev in the namespace of the installation'),
  ]);
  await makeOperator('platform');
  await eventually(async () => expect(await statusOf('GET', '/api/installation', token)).toBe(200));
  expect((await world.request('GET', '/api/installation', { key: token })).body).toMatchObject({ mode: 'cluster', unread: [] });
  expect(await statusOf('GET', '/api/installation', admin)).toBe(403);
});

test('an operator sees the replicas and the conditions of DeliveryPools that the controller reports, and that none reports them', async () => {
  const token = await account('acme', 'pools', { role: 'posthorn-viewer' });
  await makeOperator('pools');
  await eventually(async () => expect(await statusOf('GET', '/api/installation', token)).toBe(200));
  const show = async () => (await world.request('GET', '/api/installation', { key: token })).body;
  const unreported = expect.objectContaining({
    part: 'pools',
    message: expect.stringContaining('no report of the DeliveryPools'),
  });
  await eventually(async () => expect((await show()).warnings).toContainEqual(unreported));
  const lastTransitionTime = '2026-01-02T03:04:05Z';
  const conditions: PoolReport['conditions'] = [
    { type: 'Available', status: 'False', reason: 'MinimumReplicasUnavailable', message: 'too few pods', lastTransitionTime },
    { type: 'Ready', status: 'False', reason: 'RollingOut', message: 'new pods come', lastTransitionTime },
  ];
  const reports = new PoolReports({ redis: world.redis.client, prefix: 'test:' });
  await reports.write([
    { name: 'eu', replicas: { wanted: 3, ready: 1 }, conditions },
    { name: 'new', replicas: null, conditions: [] },
  ]);
  const { pools, warnings, unread } = await show();
  expect(pools).toEqual([
    { name: 'eu', workers: 0, slots: 0, replicas: { wanted: 3, ready: 1 }, conditions },
    { name: 'new', workers: 0, slots: 0, replicas: null, conditions: [] },
  ]);
  expect([unread, warnings]).toEqual([[], expect.not.arrayContaining([unreported])]);
  expect(warnings.filter(({ part }: { part: string }) => part === 'pools')).toEqual([
    {
      part: 'pools',
      message: 'The DeliveryPool eu has Available=False: too few pods.',
      action: expect.stringMatching(/^Look at the status of the DeliveryPool: kubectl -n \S+ describe dpool eu\.$/),
    },
  ]);
});

test('a report of DeliveryPools that is malformed is named as such, and the rest is shown', async () => {
  const token = await account('acme', 'malformed', { role: 'posthorn-viewer' });
  await makeOperator('malformed');
  await eventually(async () => expect(await statusOf('GET', '/api/installation', token)).toBe(200));
  for (const text of ['{', '[{"name":1}]']) {
    await world.redis.client.set('test:{workers}:pools', text);
    const { body } = await world.request('GET', '/api/installation', { key: token });
    expect(body).toMatchObject({
      pools: [],
      unread: [{ part: 'pools', reason: 'The report of the DeliveryPools in Redis is malformed.' }],
    });
  }
  await world.redis.client.del('test:{workers}:pools');
});

test('an account reaches each organization in whose namespace it has rights, and only those', async () => {
  const token = await account('elsewhere', 'pipeline', { role: 'posthorn-developer', within: ['globex'] });
  expect(await statusOf('POST', '/api/organizations/globex/filters', token, filter('of the pipeline'))).toBe(201);
  const id = await world.organizationId('globex');
  expect((await world.request('GET', `/api/organizations/${id}/filters`, { key: token })).text).toContain('of the pipeline');
  expect(await statusOf('GET', '/api/organizations/acme/filters', token)).toBe(404);
});

test('a session of a token acts in the organization that it names and in others where the token has rights, ends with the token, and goes when that is refused', async () => {
  const token = await account('elsewhere', 'browser', { role: 'posthorn-viewer', within: ['acme', 'globex'] });
  const begin = (organization?: string) => world.request('POST', '/api/sessions', { key: null, body: { credential: token, organization } });
  expect((await begin()).body).toMatchObject({ organization: { slug: 'acme' } });
  expect((await begin('unknown')).status).toBe(404);
  const begun = await begin('globex');
  expect([begun.status, begun.body]).toMatchObject([
    201,
    { organization: { slug: 'globex' }, role: 'viewer', who: 'system:serviceaccount:elsewhere:browser' },
  ]);
  const cookie = begun.headers.get('set-cookie')?.split(';')[0] ?? '';
  const maxAgeSeconds = Number(/Max-Age=(\d+)/.exec(begun.headers.get('set-cookie') ?? '')?.[1]);
  expect(maxAgeSeconds).toBeGreaterThan(500);
  expect(maxAgeSeconds).toBeLessThan(3600);
  const get = (path: string) => world.request('GET', path, { key: null, headers: { cookie } });
  expect((await get('/api/sessions/current')).body).toMatchObject({ how: 'session', organization: { slug: 'globex' }, role: 'viewer' });
  expect((await get('/api/organizations/acme/sessions/current')).body).toMatchObject({ organization: { slug: 'acme' } });
  await controlPlane.request('DELETE', '/api/v1/namespaces/elsewhere/serviceaccounts/browser');
  // One that has not requested the token yet.
  const kubernetesCallers = new KubernetesCallers({
    access: new KubernetesAccess({ api, audiences: ['posthorn'] }),
    registry: world.registry,
  });
  const refused = await world.startReplica({ kubernetesCallers });
  await eventually(async () => {
    const answer = await refused('GET', '/api/sources', { key: null, headers: { cookie } });
    expect([answer.status, answer.headers.get('set-cookie')]).toEqual([401, null]);
  });
  expect((await get('/api/sources')).status).toBe(401);
});

test('a token whose rights lie beyond the first 100 organizations has to name its own, and is accepted with its name', async () => {
  const token = await account('elsewhere', 'far', { role: 'posthorn-viewer', within: ['globex'] });
  const { client } = world.redis;
  const [index = ''] = await client.keys('test:*org-slug');
  const others = Array.from({ length: 100 }, (_, i) => `a${String(i).padStart(3, '0')}`);
  await client.hset(index, Object.fromEntries(others.map((slug) => [slug, `org_${slug}`])));
  const begin = (organization?: string) => world.request('POST', '/api/sessions', { key: null, body: { credential: token, organization } });
  const refused = await begin();
  expect([refused.status, refused.body.message]).toEqual([
    404,
    'The token has no rights in the first 100 organizations: name the one that it is for.',
  ]);
  expect((await begin('globex')).body).toMatchObject({ organization: { slug: 'globex' } });
  await client.hdel(index, ...others);
});

test('a token sees the organizations in which it has rights, page by page, with its role there, whatever organization it is of', async () => {
  const token = await account('elsewhere', 'switcher', { role: 'posthorn-developer', within: ['globex'] });
  const list = async (key: string, query = '') => (await world.request('GET', `/api/organizations${query}`, { key })).body;
  const globex = { id: await world.organizationId('globex'), name: 'globex', slug: 'globex', role: 'developer' };
  expect(await list(token)).toEqual({ data: [globex], pagination: { hasMore: false, nextCursor: null } });
  const both = await account('globex', 'both', { role: 'posthorn-viewer', within: ['acme', 'globex'] });
  const [first, second] = [
    { slug: 'acme', role: 'viewer' },
    { slug: 'globex', role: 'viewer' },
  ];
  const page = await list(both, '?limit=1');
  expect(page).toMatchObject({ data: [first], pagination: { hasMore: true } });
  expect(await list(both, `?limit=1&cursor=${page.pagination.nextCursor}`)).toMatchObject({
    data: [second],
    pagination: { hasMore: false },
  });
  expect(await statusOf('GET', `/api/organizations?cursor=${page.pagination.nextCursor}`, token)).toBe(400);
  expect(await statusOf('GET', '/api/organizations', await account('elsewhere', 'stranger'))).toBe(404);
  reviews = [];
  await list(token);
  expect(reviews).toEqual([]);
});

test('a right that is granted counts at once, one that is known costs no review for a minute, and the name of the user is logged', async () => {
  const token = await account('acme', 'later');
  expect(await statusOf('GET', '/api/filters', token)).toBe(404);
  await controlPlane.request('POST', '/apis/rbac.authorization.k8s.io/v1/namespaces/acme/rolebindings', {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { name: 'later' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'posthorn-viewer' },
    subjects: [{ kind: 'ServiceAccount', name: 'later', namespace: 'acme' }],
  });
  await eventually(async () => expect(await statusOf('GET', '/api/filters', token)).toBe(200));
  reviews = [];
  await Promise.all(Array.from({ length: 20 }, async () => expect(await statusOf('GET', '/api/filters', token)).toBe(200)));
  expect(reviews).toEqual([]);
  expect(world.logLines.some((line) => line.includes('"userName":"system:serviceaccount:acme:later"'))).toBe(true);
  expect(world.logLines.join('\n')).not.toContain(token);
});

test('a token for another audience, a broken one and one that is none are refused; one for the second audience is taken', async () => {
  const role = 'posthorn-viewer';
  const foreign = await account('acme', 'foreign', { role, audience: 'vault' });
  expect(await statusOf('GET', '/api/filters', foreign)).toBe(401);
  const token = await account('acme', 'second', { role, audience: 'webhooks' });
  expect(await statusOf('GET', '/api/filters', `${token.slice(0, -4)}AAAA`)).toBe(401);
  expect(await statusOf('GET', '/api/filters', 'a.b.c')).toBe(401);
  reviews = [];
  expect(await statusOf('GET', '/api/filters', `${'a'.repeat(9000)}.b.c`)).toBe(401);
  expect(reviews).toEqual([]);
  expect(await statusOf('GET', '/api/filters', token)).toBe(200);
});

test('tokens of several accounts and API keys use the rate limit of their organization together', async () => {
  await world.addOrganization('metered', 'free');
  await controlPlane.request('POST', '/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'metered' } });
  const role = 'posthorn-viewer';
  const keys = [await account('metered', 'one', { role }), await account('metered', 'two', { role }), await world.addKey('metered')];
  const left: number[] = [];
  for (const key of keys) left.push(Number((await world.request('GET', '/api/filters', { key })).headers.get('x-ratelimit-remaining')));
  expect(left).toEqual([999, 998, 997]);
});

test('while the API server is down new tokens are answered 503, and API keys work', async () => {
  const token = await account('acme', 'waiting', { role: 'posthorn-viewer' });
  isAway = true;
  expect(await statusOf('GET', '/api/filters', token)).toBe(503);
  expect(await statusOf('GET', '/api/filters', world.admin)).toBe(200);
  isAway = false;
  expect(await statusOf('GET', '/api/filters', token)).toBe(200);
});

test("a key that a service account makes is nobody else's, and says who made it", async () => {
  const token = await account('acme', 'key-maker', { role: 'posthorn-admin' });
  const answer = await world.request('POST', '/api/api-keys', { key: token, body: { name: 'By an account' } });
  expect(answer).toMatchObject({
    status: 201,
    body: { apiKey: { createdBy: { name: 'system:serviceaccount:acme:key-maker', keyId: null } } },
  });
  expect(await statusOf('GET', '/api/filters', answer.body.key)).toBe(200);
});

test('a client whose tokens are refused again and again gets 429 without a further review, and a token that was accepted before still passes', async () => {
  const token = await account('acme', 'unhurried', { role: 'posthorn-viewer' });
  const ask = (key: string) => world.request('GET', '/api/filters', { key, headers: { 'x-forwarded-for': '198.51.100.9' } });
  expect((await ask(token)).status).toBe(200);
  reviews = [];
  const statuses = await Promise.all(Array.from({ length: 150 }, async (_, i) => (await ask(`a.guess.${i}`)).status));
  const refused = statuses.filter((status) => status === 401).length;
  expect(refused).toBe(60);
  expect(statuses.filter((status) => status === 429)).toHaveLength(150 - refused);
  expect(reviews).toHaveLength(refused);
  expect((await ask(token)).status).toBe(200);
});
