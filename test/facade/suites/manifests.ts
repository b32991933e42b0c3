import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { ConfigurationKind } from '../../../src/resources/kinds.ts';
import type { ApplyObject } from '../../../src/store/store.ts';
import { eventually } from '../../support/eventually.ts';
import type { FacadeWorld } from '../facade-world.ts';

/** Resources as their manifests, with any store behind the API. */
export function describeManifests(start: () => Promise<FacadeWorld>): void {
  let world: FacadeWorld;
  let named = 0;
  beforeAll(async () => {
    world = await start();
    await world.addOrganization('stranger');
  });
  afterAll(() => world.stop());

  const read = (id: string, key?: string) => world.request('GET', `/api/manifests/${id}`, { key });
  const patchFor = (id: string, change: object, key?: string) =>
    world.request('POST', `/api/manifests/${id}/patch`, { body: { change }, key });
  const url = 'https://hooks.example.com/in';

  async function applied(kind: ConfigurationKind, spec: object, more: object = {}): Promise<string> {
    const name = kind === 'WebhookEventType' ? 'by.git' : `of-git-${++named}`;
    const object = { kind, metadata: { name, namespace: 'acme', ...more }, spec } as ApplyObject;
    await world.store.apply(object, { manager: 'argocd', force: true });
    return name;
  }
  /** The id of the record at a path, once the facade has it. */
  const idAt = (path: string) =>
    eventually(async () => {
      const { status, body } = await world.request('GET', `/api/${path}`);
      expect(status).toBe(200);
      return (body.cronJob ?? body.data ?? body).id as string;
    });

  test('a destination that the API made shows its manifest, owned by nobody else, with its conditions', async () => {
    const { id } = await world.create('destinations', { name: 'Orders', slug: 'orders', url, timeoutMs: 4321 });
    await eventually(async () => expect((await read(id)).body.conditions).not.toEqual([]));
    const { status, body } = await read(id);
    expect([status, body]).toEqual([
      200,
      {
        id,
        manifest: {
          apiVersion: 'posthorn.dev/v1alpha1',
          kind: 'Destination',
          metadata: { name: 'orders', namespace: 'acme', annotations: { 'posthorn.dev/id': id } },
          spec: expect.objectContaining({ name: 'Orders', type: 'http', http: expect.objectContaining({ url, timeoutMs: 4321 }) }),
        },
        isLocked: false,
        owners: [],
        conditions: expect.arrayContaining([
          {
            type: 'Ready',
            status: 'True',
            reason: expect.any(String),
            message: expect.any(String),
            lastTransitionTime: expect.any(String),
          },
        ]),
      },
    ]);
  });

  test('each field of another manager is named with its place, its field of the record and the manager', async () => {
    const headers = [
      { name: 'x-team', value: 'shop' },
      { name: 'x-stage', value: 'a/b' },
    ];
    const name = await applied('Destination', { name: 'By Git', type: 'http', http: { url, headers }, retryPolicy: { maxDelayMs: 5000 } });
    const id = await idAt(`destinations/${name}`);
    const { body } = await read(id);
    const [argocd] = [['argocd']];
    expect(body.owners).toContainEqual({ path: 'spec.name', pointer: '/spec/name', field: 'name', managers: argocd });
    expect(body.owners).toContainEqual({ path: 'spec.http.url', pointer: '/spec/http/url', field: 'url', managers: argocd });
    expect(body.owners).toContainEqual({
      path: 'spec.retryPolicy.maxDelayMs',
      pointer: '/spec/retryPolicy/maxDelayMs',
      field: 'retryPolicy.maxDelay',
      managers: argocd,
    });
    expect(body.owners).toContainEqual({
      path: 'spec.http.headers[name="x-stage"].value',
      pointer: '/spec/http/headers/1/value',
      field: 'headers',
      managers: argocd,
    });
    expect(body.owners.map(({ path }: { path: string }) => path)).not.toContain('spec.http.timeoutMs');
  });

  /** Of each kind a spec of which Git owns all, and changes of single fields of the record. */
  const kindsOfGit: [string, ConfigurationKind, object, Record<string, unknown>][] = [
    [
      'destinations',
      'Destination',
      {
        name: 'By Git',
        description: 'of Git',
        enabled: true,
        type: 'http',
        http: {
          url,
          method: 'POST',
          timeoutMs: 3000,
          headers: [{ name: 'x-a', value: '1' }],
          auth: { type: 'bearer', tokenSecretRef: { name: 'of-git', key: 'token' } },
          useStaticIp: false,
          forwardQuery: false,
        },
        throttle: { mode: 'rate', rateLimit: 5, rateUnit: 'second' },
        retryPolicy: { maxRetries: 3, initialDelayMs: 1000, maxDelayMs: 60_000, backoffMultiplier: 2 },
      },
      {
        name: 'Other',
        description: 'other',
        enabled: false,
        url: 'https://hooks.example.com/other',
        method: 'PUT',
        timeoutMs: 4000,
        headers: { 'x-a': '2' },
        authType: 'none',
        forwardQuery: true,
        throttle: { rateLimit: 6 },
        retryPolicy: { maxDelay: 70_000 },
      },
    ],
    [
      'sources',
      'Source',
      {
        name: 'By Git',
        description: 'of Git',
        enabled: true,
        provider: 'generic',
        rateLimitPerMinute: 100,
        ipFilter: { mode: 'allowlist', allowlist: ['10.0.0.0/8'], denylist: ['192.0.2.0/24'] },
        dedup: { strategy: 'auto', header: 'x-id', windowHours: 12 },
        allowedMethods: ['POST'],
      },
      {
        name: 'Other',
        description: 'other',
        enabled: false,
        provider: 'github',
        rateLimitPerMinute: 200,
        ipFilterMode: 'denylist',
        ipAllowlist: ['10.1.0.0/16'],
        dedupHeader: 'x-other',
        dedupWindowHours: 13,
        allowedMethods: ['PUT'],
      },
    ],
    [
      'routes',
      'Route',
      {
        name: 'By Git',
        description: 'of Git',
        enabled: true,
        sourceRef: { name: 'none' },
        destinationRefs: [],
        filter: { logic: 'AND', conditions: [{ field: 'a', operator: 'exists' }] },
        priority: 1,
        expectedResponse: { bodyContains: 'ok' },
        circuit: { failureThreshold: 5, cooldownSeconds: 60, probeSuccessThreshold: 2 },
        notifications: { onFailure: true, onSuccess: false, onRecovery: false, failureThreshold: 3 },
      },
      {
        name: 'Other',
        description: 'other',
        enabled: false,
        filterLogic: 'OR',
        filterConditions: [{ field: 'b', operator: 'exists' }],
        priority: 2,
        expectedResponse: { bodyContains: 'other' },
        circuitFailureThreshold: 6,
        circuitCooldownSeconds: 61,
        circuitProbeSuccessThreshold: 3,
        notifyOnFailure: false,
        notifyOnSuccess: true,
        notifyOnRecovery: true,
        failureThreshold: 4,
      },
    ],
    [
      'cron',
      'HttpCronJob',
      {
        name: 'By Git',
        description: 'of Git',
        enabled: true,
        schedule: '0 6 * * *',
        timeZone: 'UTC',
        url,
        method: 'POST',
        payload: 'x',
        timeoutMs: 900,
      },
      {
        name: 'Other',
        description: 'o',
        isActive: false,
        cronExpression: '1 6 * * *',
        timezone: 'Europe/Vienna',
        method: 'GET',
        payload: 'y',
        timeoutMs: 901,
      },
    ],
    [
      'notification-channels',
      'NotificationChannel',
      { name: 'By Git', enabled: true, type: 'webhook', webhook: { url } },
      { name: 'Other', enabled: false, config: { url: 'https://hooks.example.com/other' } },
    ],
    [
      'event-types',
      'WebhookEventType',
      { name: 'by.git', displayName: 'By Git', description: 'of Git', category: 'a', enabled: true, deprecated: false },
      { displayName: 'Other', description: 'other', category: 'b', isEnabled: false, isDeprecated: true },
    ],
  ];

  test.each(kindsOfGit)(
    'among %s the owners name each field that FIELD_MANAGED refuses, and the patch has it',
    async (path, kind, spec, changes) => {
      const name = await applied(kind, spec);
      const id = await idAt(`${path}/${name}`);
      const { owners, manifest } = (await read(id)).body;
      const fields: string[] = owners.map(({ field }: { field: string }) => field.replace(/[.[].*$/s, ''));
      const paths: string[] = owners.map((owner: { path: string }) => owner.path);
      for (const [field, value] of Object.entries(changes)) {
        const refused = await world.request('PATCH', `/api/${path}/${id}`, { body: { [field]: value } });
        expect([field, refused.status, refused.headers.get('x-error-code')]).toEqual([field, 409, 'FIELD_MANAGED']);
        expect(fields).toContain(field);
        const named = [...refused.text.matchAll(/spec\.[\w.]+/g)].map(([each]) => each);
        expect(paths.some((each) => named.some((one) => each.startsWith(one)))).toBe(true);
        const patch = await patchFor(id, { [field]: value });
        expect([field, patch.status]).toEqual([field, 200]);
        expect(patch.body.patch).toMatchObject({ kind, metadata: { name, namespace: 'acme' } });
        expect(Object.keys(patch.body.patch.spec)).toHaveLength(1);
      }
      expect((await read(id)).body.manifest).toEqual(manifest);
    },
  );

  test('credentials are in neither the manifest nor the patch: values in headers are masked, and a sent one becomes a reference', async () => {
    const secret = 'Bearer very-secret-value-of-git';
    const headers = [{ name: 'authorization', value: secret }];
    const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': JSON.stringify({ headers }) };
    const name = await applied('HttpCronJob', { schedule: '0 6 * * *', url, headers }, { annotations });
    const id = await idAt(`cron/${name}`);
    const manifest = await read(id);
    expect(manifest.text).not.toContain('very-secret');
    expect(manifest.body.manifest.spec.headers).toEqual([{ name: 'authorization', value: expect.stringMatching(/^•+/) }]);
    const patch = await patchFor(id, { headers: { authorization: 'Bearer another-secret-value', 'x-team': 'shop' } });
    expect(patch.text).not.toContain('secret-value');
    const ref = { name: `${name}-credentials`, key: 'header-authorization' };
    expect(patch.body.patch.spec).toEqual({
      headers: [
        { name: 'authorization', valueSecretRef: ref },
        { name: 'x-team', value: 'shop' },
      ],
    });
    expect(patch.body.secrets).toEqual([{ name: ref.name, keys: [ref.key] }]);
    const channel = await world.create('notification-channels', {
      type: 'slack',
      config: { webhookUrl: 'https://hooks.slack.com/services/T0/B0/hidden' },
    });
    const shown = await read(channel.id);
    expect(shown.text).not.toContain('/T0/B0/');
    expect(shown.body.manifest.spec.slack.webhookUrlSecretRef).toEqual({ name: expect.any(String), key: expect.any(String) });
  });

  test('a patch removes with null, holds only what differs, and writes nothing', async () => {
    const name = await applied('Destination', { name: 'By Git', description: 'of Git', type: 'http', http: { url } });
    const id = await idAt(`destinations/${name}`);
    const { manifest } = (await read(id)).body;
    const { body } = await patchFor(id, { name: 'By Git', description: null, timeoutMs: 4321 });
    expect(body).toEqual({
      patch: {
        apiVersion: 'posthorn.dev/v1alpha1',
        kind: 'Destination',
        metadata: { name, namespace: 'acme' },
        spec: { description: null, http: { timeoutMs: 4321 } },
      },
      secrets: [],
    });
    expect((await read(id)).body.manifest).toEqual(manifest);
    for (const change of [{ timeoutMs: 'soon' }, { timeout: 1 }]) {
      const wrong = await patchFor(id, change);
      expect([wrong.status, wrong.body.code]).toEqual([400, 'VALIDATION_FAILED']);
    }
  });

  test('another organization finds none of it, a viewer reads it and gets no patch, and an API key has no manifest', async () => {
    const { id } = await world.create('sources');
    const stranger = await world.addKey('stranger');
    for (const answer of [await read(id, stranger), await patchFor(id, { name: 'Taken' }, stranger)])
      expect([answer.status, answer.body.code]).toEqual([404, 'RESOURCE_NOT_FOUND']);
    const viewer = await world.addKey('acme', { role: 'viewer' });
    expect((await read(id, viewer)).status).toBe(200);
    expect((await patchFor(id, { name: 'Taken' }, viewer)).status).toBe(403);
    const key = (await world.create('api-keys', { role: 'viewer' })).apiKey.id;
    for (const each of [key, 'src_aaaaaaaaaaaaaaaaaaaaaaaaaa', 'msg_1', 'orders', 'constructor'])
      expect([each, (await read(each)).status]).toEqual([each, 404]);
  });

  test('an application of the API has no manifest; a declared one is locked as a whole', async () => {
    const made = (await world.create('webhook-applications')).data;
    const none = await read(made.id);
    expect([none.status, none.body.message]).toEqual([404, 'The application was made through the API and has no manifest.']);
    const name = await applied('WebhookApplication', { name: 'By Git' });
    const id = await eventually(async () => {
      const { status } = await world.store.get('WebhookApplication', { namespace: 'acme', name });
      expect(status?.conditions).toContainEqual(expect.objectContaining({ type: 'Ready', status: 'True' }));
      return status?.id ?? '';
    });
    const { body } = await read(id);
    expect(body).toMatchObject({
      id,
      isLocked: true,
      manifest: { kind: 'WebhookApplication', metadata: { name }, spec: { name: 'By Git' } },
    });
    expect(body.owners).toContainEqual({ path: 'spec.name', pointer: '/spec/name', field: null, managers: ['argocd'] });
    const patch = await patchFor(id, { name: 'Other' });
    expect([patch.status, patch.body.code]).toEqual([409, 'FIELD_MANAGED']);
    expect((await read(id, await world.addKey('stranger'))).status).toBe(404);
  });
}
