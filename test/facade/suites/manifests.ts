import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { ConfigurationKind } from '../../../src/resources/kinds.ts';
import type { ApplyObject } from '../../../src/store/store.ts';
import { eventually } from '../../support/eventually.ts';
import type { FacadeWorld } from '../facade-world.ts';
import { kindsOfGit, url } from './manifest-kinds.ts';

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
    expect((await world.request('GET', `/api/manifests/${id}/events`)).body).toEqual({ isKept: false, data: [] });
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

  test.each(kindsOfGit)(
    'the owners among %s name each field that FIELD_MANAGED refuses, and the patch has it',
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
    const copy = JSON.stringify({ headers });
    const copies = ['kubectl.kubernetes.io/last-applied-configuration', 'objectset.rio.cattle.io/applied', 'banzaicloud.com/last-applied'];
    const annotations = { ...Object.fromEntries(copies.map((each) => [each, copy])), 'posthorn.dev/idempotency': 'mark' };
    const name = await applied('HttpCronJob', { schedule: '0 6 * * *', url, headers }, { annotations });
    const id = await idAt(`cron/${name}`);
    const manifest = await read(id);
    expect(manifest.text).not.toContain('very-secret');
    expect(manifest.body.manifest.metadata.annotations).toEqual({ 'posthorn.dev/id': id });
    expect(manifest.body.manifest.spec.headers).toEqual([{ name: 'authorization', value: expect.stringMatching(/^•+/) }]);
    const patch = await patchFor(id, { headers: { authorization: 'Bearer another-secret-value', 'x-team': 'shop' } });
    expect(patch.text).not.toContain('secret-value');
    const ref = { name: `${name}.cron-job-credentials`, key: 'header-authorization' };
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

  test('the patch with the URL of another origin has a Secret in place of the one that the API made for the first', async () => {
    const { id, slug } = await world.create('destinations', { url, authType: 'bearer', authConfig: { token: 'token-of-the-api' } });
    await world.store.apply(
      { kind: 'Destination', metadata: { name: slug, namespace: 'acme' }, spec: { http: { url } } } as unknown as ApplyObject,
      { manager: 'argocd', force: true },
    );
    await eventually(async () => expect((await read(id)).body.owners).toContainEqual(expect.objectContaining({ field: 'url' })));
    const { manifest } = (await read(id)).body;
    const same = await patchFor(id, { url: 'https://hooks.example.com/other' });
    expect([same.body.patch.spec, same.body.secrets]).toEqual([{ http: { url: 'https://hooks.example.com/other' } }, []]);
    const { body } = await patchFor(id, { url: 'https://b.example/x' });
    const ref = { name: `${slug}-credentials`, key: 'token' };
    expect(body.patch.spec).toEqual({ http: { url: 'https://b.example/x', auth: { tokenSecretRef: ref } } });
    expect(body.secrets).toEqual([{ name: ref.name, keys: [ref.key] }]);
    expect((await read(id)).body.manifest).toEqual(manifest);
  });

  test('the Secrets of resources with one name differ, and the key of a signing secret does not come from the name', async () => {
    const slug = 'of-one-name';
    const made = { slug, name: 'Of one name' };
    const headers = { authorization: 'Bearer value-in-a-header' };
    const [destination, source, cron] = [
      await world.create('destinations', { ...made, url }),
      await world.create('sources', made),
      (await world.create('cron', { ...made, cronExpression: '0 6 * * *', url })).cronJob,
    ];
    const secretsOf = async (id: string, change: object) => (await patchFor(id, change)).body.secrets;
    expect(await secretsOf(destination.id, { headers })).toEqual([{ name: `${slug}-credentials`, keys: ['header-authorization'] }]);
    expect(await secretsOf(cron.id, { headers })).toEqual([{ name: `${slug}.cron-job-credentials`, keys: ['header-authorization'] }]);
    const signed = { name: 'Renamed', signingSecret: 'a-secret-to-sign-with' };
    expect(await secretsOf(source.id, signed)).toEqual([{ name: `${slug}.source-credentials`, keys: ['signing'] }]);
  });

  test('free JSON stays as it is, whatever its members are called, and null in it, which a patch cannot set, is refused', async () => {
    const example = { headers: [{ name: 'authorization', value: 'Bearer value-of-an-example' }], tokenSecretRef: { name: 'a', key: 'b' } };
    const jsonSchema = { type: 'object', headers: example.headers, examples: [example], 'x-example': example };
    const { id } = await world.create('schemas', { name: 'Free', jsonSchema });
    expect((await read(id)).body.manifest.spec.jsonSchema).toEqual(jsonSchema);
    const other = { ...jsonSchema, type: ['object', 'null'], 'x-other': example };
    const { body } = await patchFor(id, { jsonSchema: other });
    expect([body.patch.spec, body.secrets]).toEqual([{ jsonSchema: { type: other.type, 'x-other': example } }, []]);
    for (const members of [{ default: null }, { 'x-example': null }, { properties: { a: { const: null } } }]) {
      const refused = { ...jsonSchema, ...members };
      const answer = await patchFor(id, { jsonSchema: refused });
      expect([answer.status, answer.body]).toEqual([
        400,
        expect.objectContaining({
          code: 'VALIDATION_FAILED',
          message: 'A merge patch cannot set null: change it in the manifest itself.',
        }),
      ]);
    }
  });

  test('a patch follows the resource under one Idempotency-Key, too', async () => {
    const { id } = await world.create('destinations', { name: 'First', url });
    const headers = { 'idempotency-key': 'patch-of-a-manifest' };
    const ask = () => world.request('POST', `/api/manifests/${id}/patch`, { body: { change: { name: 'Second' } }, headers });
    expect((await ask()).body.patch.spec).toEqual({ name: 'Second' });
    await world.request('PATCH', `/api/destinations/${id}`, { body: { name: 'Second' } });
    const again = await ask();
    expect([again.headers.get('idempotent-replayed'), again.body.patch.spec]).toEqual([null, {}]);
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
