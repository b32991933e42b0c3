import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { readConfig } from '../../src/cmd/config.ts';
import { migrate } from '../../src/cmd/migrate.ts';
import { PosthornError } from '../../src/core/errors.ts';
import { storeLayout } from '../../src/data/registry/store-layout.ts';
import { systemClock } from '../../src/runtime/system-clock.ts';
import type { KubernetesApi } from '../../src/store/kubernetes/kubernetes-api.ts';
import { migrateStoredVersions } from '../../src/store/kubernetes/stored-versions.ts';
import { type ControlPlane, startControlPlane } from '../support/control-plane.ts';
import { eventually } from '../support/eventually.ts';
import { kubernetesApi } from '../support/kubernetes-api.ts';
import { type RedisServer, startRedis } from '../support/redis.ts';
import { tokenOfJob } from '../support/service-account-tokens.ts';

// biome-ignore lint/suspicious/noExplicitAny: objects of many kinds
type Any = any;

const earlier = 'v1alpha0';
const today = 'v1alpha1';
const definition = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/filters.posthorn.dev';
const filters = `/apis/posthorn.dev/${today}/namespaces/default/filters`;
const mergePatch = 'application/merge-patch+json';
let plane: ControlPlane;
let redis: RedisServer;
let api: KubernetesApi;
beforeAll(async () => {
  plane = await startControlPlane({ crds: true });
  redis = await startRedis();
  api = kubernetesApi(plane);
}, 120_000);
afterAll(async () => {
  await api.close();
  await redis.stop();
  await plane.stop();
});

/** As in the definition of a release: its versions, of which objects are stored in one. */
async function serve(versions: readonly string[], storage: string): Promise<void> {
  const { spec }: Any = await plane.request('GET', definition);
  const [schema] = spec.versions;
  const wanted = versions.map((name) => ({ ...schema, name, storage: name === storage }));
  await plane.request('PATCH', definition, { spec: { versions: wanted } }, mergePatch);
}
const storedVersions = async (): Promise<string[]> => ((await plane.request('GET', definition)) as Any).status.storedVersions;
const storedIn = async (name: string): Promise<string> => JSON.parse(await plane.stored(`posthorn.dev/filters/default/${name}`)).apiVersion;
const filter = async (name: string): Promise<Any> => plane.request('GET', `${filters}/${name}`);

async function makeFilter(name: string, version: string): Promise<void> {
  const spec = { logic: 'AND', conditions: [{ field: 'payload.a', operator: 'exists' }] };
  const body = { apiVersion: `posthorn.dev/${today}`, kind: 'Filter', metadata: { name, namespace: 'default' }, spec };
  // The API server takes a moment until it stores in another version.
  await eventually(async () => {
    await plane.request('PATCH', `${filters}/${name}?fieldManager=test`, body, 'application/apply-patch+yaml');
    if ((await storedIn(name)) === `posthorn.dev/${version}`) return;
    await plane.request('DELETE', `${filters}/${name}`);
    throw new Error(`${name} is not stored in ${version}`);
  }, 30_000);
}

/** Filters of a release that stored them in an earlier version; `fresh` is of today. */
async function upgraded(fresh: string, ...names: string[]): Promise<void> {
  await serve([earlier, today], earlier);
  for (const name of names) await makeFilter(name, earlier);
  await serve([earlier, today], today);
  await makeFilter(fresh, today);
  expect((await storedVersions()).toSorted()).toEqual([earlier, today]);
}

test('migrate, with the rights that its manifest gives it, has objects of an earlier version stored in that of today, after which the earlier one can go', async () => {
  await upgraded('new', 'old');
  const [old, fresh] = [await filter('old'), await filter('new')];
  await expect(serve([today], today)).rejects.toThrow(/storedVersions/);
  const config = readConfig('migrate', {
    POSTHORN_REDIS_URL: redis.url,
    KUBECONFIG: plane.writeKubeconfig({ token: await tokenOfJob(plane, 'migrate/migrate.yaml', 'posthorn-migrate') }),
  });
  const run = async () => {
    const lines: string[] = [];
    return { code: await migrate(config, (line) => void lines.push(line)), lines };
  };
  const linesWith = (kinds: number) => [
    'unfinished bytes in 1 shards: 0 figures corrected',
    `custom resources: ${kinds} kinds stored again in the version of today; 0 complaints`,
    `everything is in layout ${storeLayout}`,
  ];
  expect(await run()).toEqual({ code: 0, lines: linesWith(1) });
  expect(await storedVersions()).toEqual([today]);
  expect(await storedIn('old')).toBe(`posthorn.dev/${today}`);
  const after = await filter('old');
  expect({ ...after, metadata: { ...after.metadata, resourceVersion: '' } }).toEqual({
    ...old,
    metadata: { ...old.metadata, resourceVersion: '' },
  });
  expect(await filter('new')).toEqual(fresh);
  expect(await run()).toEqual({ code: 0, lines: linesWith(0) });

  await serve([today], today);
  await eventually(async () => expect((await filter('old')).spec).toEqual(old.spec));
}, 120_000);

test('broken off in the middle it says nothing of what it has not done, and the next one does the rest', async () => {
  await upgraded('e', 'a', 'b');
  const report = (complaint: string): never => {
    throw new Error(complaint);
  };
  let written = 0;
  const dying: Pick<KubernetesApi, 'request'> = {
    request: async (method, path, options) => {
      if (method === 'PATCH' && ++written > 1) throw new Error('the process ends here');
      return api.request(method, path, options);
    },
  };
  await expect(migrateStoredVersions({ api: dying, clock: systemClock, report })).rejects.toThrow('the process ends here');
  expect([await storedIn('a'), await storedIn('b')]).toEqual([`posthorn.dev/${today}`, `posthorn.dev/${earlier}`]);
  expect((await storedVersions()).toSorted()).toEqual([earlier, today]);
  expect(await migrateStoredVersions({ api, clock: systemClock, report })).toBe(1);
  expect(await storedIn('b')).toBe(`posthorn.dev/${today}`);
  expect(await storedVersions()).toEqual([today]);
}, 120_000);

test('an object that the API server does not take again is named, and the version in which it is stored stays recorded', async () => {
  await upgraded('f', 'c', 'd');
  const refusing: Pick<KubernetesApi, 'request'> = {
    request: async (method, path, options) => {
      if (method === 'PATCH' && path.endsWith('/c')) throw new PosthornError('VALIDATION_FAILED', 'spec.logic: is wrong');
      return api.request(method, path, options);
    },
  };
  const complaints: string[] = [];
  const report = (complaint: string): void => void complaints.push(complaint);
  expect(await migrateStoredVersions({ api: refusing, clock: systemClock, report })).toBe(0);
  expect(complaints).toEqual(['Filter default/c cannot be stored again: spec.logic: is wrong']);
  expect((await storedVersions()).toSorted()).toEqual([earlier, today]);
}, 120_000);
