import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { secretSealingContext } from '../../src/core/sealing-contexts.ts';
import { OrganizationLock, organizationLockKeys } from '../../src/data/locks/organization-lock.ts';
import { WriteAheadLog } from '../../src/data/locks/write-ahead-log.ts';
import { madeForIn, secretUsesIn } from '../../src/resources/secret-use.ts';
import { systemClock } from '../../src/runtime/system-clock.ts';
import { testKeyring } from '../support/controllers.ts';
import { CrashingProcess, crashingStore, lockWrites, mortal } from '../support/crashing-process.ts';
import { eventually } from '../support/eventually.ts';
import { silentLogger } from '../support/logger.ts';
import { breakOff } from './broken-off.ts';
import { type Answer, type FacadeWorld, startFacadeWorld } from './facade-world.ts';

/** Where `WriteTransaction` documents that a crash leaves something, another process finishes or undoes it. */
describe('a process that dies at any of its writes, to the store, the lock or the log', () => {
  let world: FacadeWorld;
  let mortalRequest: FacadeWorld['request'];
  let life = immortal();
  let lock: ReturnType<typeof organizationLockKeys>;
  beforeAll(async () => {
    world = await startFacadeWorld();
    lock = organizationLockKeys('test:', await world.organizationId('acme'));
    const process = {
      read: <T>(call: () => Promise<T>): Promise<T> => life.read(call),
      write: <T>(call: Parameters<typeof life.write<T>>[0]): Promise<T> => life.write(call),
      // The caches of the replica are of no interest here and live on.
      died: new AbortController().signal,
    };
    const redis = mortal(world.redis.client, process, lockWrites);
    const shared = { redis, prefix: 'test:', clock: systemClock, logger: silentLogger };
    mortalRequest = await world.startReplica({
      store: crashingStore(world.store, process),
      organizationLock: new OrganizationLock(shared),
      writeAheadLog: new WriteAheadLog(shared),
    });
  });
  afterAll(() => world.stop());

  const url = 'https://hooks.example.com/in';
  let made = 0;
  const newName = (): string => `crashed-${++made}`;
  const read = async (path: string): Promise<Answer> => world.request('GET', `/api/${path}`);
  const listed = async (collection: string, name: string): Promise<{ name: string; slug: string; id: string }[]> =>
    (await read(`${collection}?${collection === 'api-keys' ? '' : `search=${name}&`}pageSize=100`)).body.data.filter(
      (each: { name: string }) => each.name.startsWith(name),
    );

  interface Sent {
    method: string;
    path: string;
    body?: object;
    /** Absent: the request has no Idempotency-Key. */
    key?: string;
  }
  interface Case {
    send: Sent;
    /** The result of the equal request that is sent once more; it may find that all is done. */
    repeated: readonly number[];
    /** After the next process has checked and before the request is repeated: all of it or nothing. */
    checkWhole?(): Promise<void>;
    /** At the end. */
    check(answer: Answer): Promise<void>;
  }
  const cases: [what: string, setUp: () => Promise<Case>][] = [
    [
      'creating a destination with credentials',
      async () => {
        const name = newName();
        const body = {
          name,
          url,
          authType: 'bearer',
          authConfig: { token: 'a-long-token-000042' },
          headers: { 'X-Api-Key': 'a-long-key-000017' },
        };
        return {
          send: { method: 'POST', path: 'destinations', body, key: name },
          repeated: [201],
          check: async ({ body: record }) => {
            expect(await listed('destinations', name)).toHaveLength(1);
            expect((await read(`destinations/${record.id}`)).body.authConfig).toEqual({ token: '••••0042' });
          },
        };
      },
    ],
    [
      'changing the credentials of a destination',
      async () => {
        const { id } = await world.create('destinations', { url, authType: 'bearer', authConfig: { token: 'a-long-token-000042' } });
        const body = { url: `${url}/new`, authConfig: { token: 'another-token-000043' } };
        return {
          send: { method: 'PATCH', path: `destinations/${id}`, body },
          repeated: [200],
          checkWhole: async () => {
            const { body: record } = await read(`destinations/${id}`);
            expect([
              [url, '••••0042'],
              [body.url, '••••0043'],
            ]).toContainEqual([record.url, record.authConfig.token]);
          },
          check: async () =>
            expect((await read(`destinations/${id}`)).body).toMatchObject({ url: body.url, authConfig: { token: '••••0043' } }),
        };
      },
    ],
    [
      'replacing the signing secret of a source',
      async () => {
        const { id, slug } = await world.create('sources', {
          provider: 'standard-webhooks',
          signingSecret: `whsec_${Buffer.alloc(32, 1).toString('base64')}`,
        });
        const spec = async () => (await world.store.get('Source', { namespace: 'acme', name: slug })).spec;
        const { signingSecretRef: previousSecretRef } = await spec();
        return {
          send: { method: 'POST', path: `sources/${id}/rotate-secret`, body: { gracePeriodSeconds: 3600 }, key: slug },
          repeated: [200],
          check: async ({ body: { signingSecret, previousSecretExpiresAt } }) => {
            expect(await storedSecret((await spec()).signingSecretRef)).toBe(signingSecret);
            expect((await spec()).rotation).toEqual({ previousSecretRef, validUntil: previousSecretExpiresAt });
          },
        };
      },
    ],
    [
      'creating a route',
      async () => {
        const name = newName();
        const body = {
          name,
          sourceId: (await world.create('sources')).id,
          destinationIds: [(await world.create('destinations', { url })).id],
        };
        return {
          send: { method: 'POST', path: 'routes', body, key: name },
          repeated: [201],
          check: async () => expect(await listed('routes', name)).toHaveLength(1),
        };
      },
    ],
    [
      'creating an API key',
      async () => {
        const name = newName();
        return {
          send: { method: 'POST', path: 'api-keys', body: { name }, key: name },
          repeated: [201],
          check: async ({ body }) => {
            expect((await world.request('GET', '/api/sources', { key: body.key })).status).toBe(200);
            await eventually(async () => expect(await listed('api-keys', name)).toHaveLength(1));
          },
        };
      },
    ],
    [
      'importing destinations',
      async () => {
        const name = newName();
        const records = ['one', 'two'].map((suffix) => ({
          name: `${name}-${suffix}`,
          type: 'http',
          url,
          authType: 'bearer',
          authConfig: { token: 'a-long-token-000042' },
          isActive: true,
        }));
        return {
          send: { method: 'POST', path: 'destinations/import', body: { destinations: records, conflictStrategy: 'rename' }, key: name },
          repeated: [200],
          check: async ({ body }) => {
            expect(body.summary).toEqual({ imported: 2, skipped: 0, overwritten: 0, failed: 0 });
            expect((await listed('destinations', name)).map((each) => each.name).sort()).toEqual(records.map((each) => each.name));
          },
        };
      },
    ],
    [
      'importing routes',
      async () => {
        const name = newName();
        const [source, one, two] = [
          await world.create('sources'),
          await world.create('destinations', { url }),
          await world.create('destinations', { url }),
        ];
        const records = [one, two].map(({ slug }, index) => ({
          name: `${name}-${index}`,
          sourceSlug: source.slug,
          destinationSlugs: [slug],
        }));
        return {
          send: { method: 'POST', path: 'routes/import', body: { routes: records, conflictStrategy: 'rename' }, key: name },
          repeated: [200],
          check: async ({ body }) => {
            expect(body).toMatchObject({ imported: 2, skipped: 0, overwritten: 0, errors: [] });
            expect((await listed('routes', name)).map((each) => each.name).sort()).toEqual(records.map((each) => each.name));
          },
        };
      },
    ],
    [
      'deleting a filter',
      async () => {
        const { id } = await world.create('filters', { conditions: [{ field: 'a', operator: 'exists' }] });
        return {
          send: { method: 'DELETE', path: `filters/${id}` },
          repeated: [204, 404],
          check: async () => expect((await read(`filters/${id}`)).status).toBe(404),
        };
      },
    ],
    [
      'deleting a destination that routes name',
      async () => {
        const [source, gone, kept] = [
          await world.create('sources'),
          await world.create('destinations', { url }),
          await world.create('destinations', { url }),
        ];
        const routes = [
          await world.create('routes', { sourceId: source.id, destinationIds: [gone.id, kept.id] }),
          await world.create('routes', { sourceId: source.id, destinationIds: [kept.id], failoverDestinationIds: [gone.id] }),
        ];
        const destinations = async () => {
          const records = await Promise.all(routes.map(async ({ id }) => (await read(`routes/${id}`)).body));
          return records.map(({ destinationIds, failoverDestinationIds }) => [destinationIds, failoverDestinationIds]);
        };
        const before = await destinations();
        const after = [
          [[kept.id], []],
          [[kept.id], []],
        ];
        const state = async () => [(await read(`destinations/${gone.id}`)).status, await destinations()];
        return {
          send: { method: 'DELETE', path: `destinations/${gone.id}` },
          repeated: [204, 404],
          checkWhole: async () =>
            expect([
              [200, before],
              [404, after],
            ]).toContainEqual(await state()),
          check: async () => expect(await state()).toEqual([404, after]),
        };
      },
    ],
    [
      'pausing routes',
      async () => {
        const source = await world.create('sources');
        const routes: { id: string }[] = [];
        for (let i = 0; i < 3; i++) {
          const destinationIds = [(await world.create('destinations', { url })).id];
          routes.push(await world.create('routes', { sourceId: source.id, destinationIds }));
        }
        const enabled = async () => Promise.all(routes.map(async ({ id }) => (await read(`routes/${id}`)).body.enabled));
        return {
          send: { method: 'PATCH', path: 'routes/bulk', body: { ids: routes.map(({ id }) => id), isActive: false } },
          repeated: [200],
          checkWhole: async () =>
            expect([
              [true, true, true],
              [false, false, false],
            ]).toContainEqual(await enabled()),
          check: async () => expect(await enabled()).toEqual([false, false, false]),
        };
      },
    ],
  ];

  test.each(cases)('%s leaves nothing half', async (_, setUp) => {
    for (const when of ['before', 'after'] as const) {
      for (let write = 1; ; write++) {
        const { send, repeated, checkWhole, check } = await setUp();
        life = new CrashingProcess({ death: { write, when }, onChange: () => {}, trouble: () => null });
        const answer = await ask(mortalRequest, send);
        const hasDied = life.died.aborted;
        life = immortal();
        try {
          if (hasDied) await outlive(send, answer);
          await eventually(async () => checkWhole?.());
          const last = hasDied ? await ask(world.request, send) : answer;
          expect(repeated).toContain(last.status);
          await check(last);
          await expectNothingLost();
        } catch (error) {
          throw new Error(`it dies ${when} write ${write}`, { cause: error });
        }
        if (!hasDied) {
          expect(write).toBeGreaterThan(1);
          break;
        }
      }
    }
  });

  async function storedSecret(ref: { name: string; key: string } | undefined): Promise<string> {
    const { name = '', key = '' } = ref ?? {};
    const { data, metadata } = await world.store.getSecret({ namespace: 'acme', name });
    const context = secretSealingContext(await world.organizationId('acme'), name, key, madeForIn(metadata));
    return testKeyring.open(Buffer.from(data?.[key] ?? '', 'base64').toString(), context);
  }

  function immortal(): CrashingProcess {
    return new CrashingProcess({ death: null, onChange: () => {}, trouble: () => null });
  }

  function ask(request: FacadeWorld['request'], { method, path, body, key }: Sent): Promise<Answer> {
    return request(method, `/api/${path}`, { body, headers: key === undefined ? {} : { 'idempotency-key': key }, key: world.admin });
  }

  /** Time passes and other processes check. Replies of a dead process are lost. */
  async function outlive({ key }: Sent, { status }: Answer): Promise<void> {
    if (key !== undefined && status < 500) await breakOff(world, key);
    await world.redis.client.del(lock.lock);
    await world.finishBegun();
  }

  /** The log and the lock are empty, each Secret has its owner, and each object the Secrets that it names. */
  async function expectNothingLost(): Promise<void> {
    expect(await world.redis.client.exists(lock.lock, lock.begun)).toBe(0);
    const objects = await Promise.all(
      (['Source', 'Destination'] as const).map(async (kind) => (await world.store.list(kind, { namespace: 'acme' })).items),
    );
    const owners = new Set(objects.flat().map(({ metadata }) => metadata.uid));
    const secrets = (await world.store.list('Secret', { namespace: 'acme' })).items;
    const orphans = secrets.filter(({ metadata }) => !owners.has(metadata.ownerReferences?.[0]?.uid ?? ''));
    expect(orphans.map(({ metadata }) => metadata.name)).toEqual([]);
    const names = new Set(secrets.map(({ metadata }) => metadata.name));
    const uses = objects.flat().flatMap(({ spec }) => secretUsesIn(spec).map(({ reference }) => reference.name));
    expect(uses.filter((name) => !names.has(name))).toEqual([]);
  }
});
