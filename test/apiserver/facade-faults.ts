import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { KubeConfig } from '@kubernetes/client-node';
import { systemClock } from '../../src/runtime/system-clock.ts';
import { KubernetesApi } from '../../src/store/kubernetes/kubernetes-api.ts';
import { KubernetesStore } from '../../src/store/kubernetes/kubernetes-store.ts';
import type { CompleteStore } from '../../src/store/store.ts';
import type { FacadeWorld } from '../facade/facade-world.ts';
import type { ControlPlane } from '../support/control-plane.ts';
import { type Answer, FaultProxy } from '../support/fault-proxy.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';

/** Results of the API for an API server that refuses, or is down. */
export function describeFaults(plane: () => ControlPlane, start: (store: CompleteStore) => Promise<FacadeWorld>): void {
  let proxy: FaultProxy;
  let api: KubernetesApi;
  let world: FacadeWorld;
  let receiver: Receiver;
  beforeAll(async () => {
    proxy = await FaultProxy.start(plane());
    const loadKubeConfig = (): KubeConfig => {
      const config = new KubeConfig();
      config.loadFromClusterAndUser({ name: 'c', server: proxy.url, skipTLSVerify: true }, { name: 'u', token: plane().token });
      return config;
    };
    api = new KubernetesApi({ loadKubeConfig, clock: systemClock });
    world = await start(new KubernetesStore({ api, clock: systemClock }));
    receiver = await startReceiver();
  });
  afterEach(() => {
    proxy.fault = () => null;
  });
  afterAll(async () => {
    await world?.stop();
    await api?.close();
    await proxy?.stop();
    await receiver?.close();
  });

  const url = 'https://hooks.example.com/in';
  const create = (name: string) => world.request('POST', '/api/destinations', { body: { name, url } });
  const status = (code: number, fields: object): Answer => ({
    status: code,
    body: { kind: 'Status', apiVersion: 'v1', status: 'Failure', code, ...fields },
  });
  /** The next `times` writes of destinations, or of another kind, get this response. */
  function answerWrites(answer: Answer, { times = Number.POSITIVE_INFINITY, plural = 'destinations' } = {}): void {
    let left = times;
    proxy.fault = ({ method, path }) => (method === 'PATCH' && path.includes(`/${plural}/`) && left-- > 0 ? answer : null);
  }
  /** What was watched stays known. */
  function takeAway(): void {
    proxy.fault = ({ isWatch }) => (isWatch ? null : status(503, { message: 'the server is currently unable to handle the request' }));
  }

  test('a quota that others have changed meanwhile is not taken for a slug that is taken', async () => {
    const message = 'Operation cannot be fulfilled on resourcequotas "posthorn": the object has been modified';
    answerWrites(status(409, { reason: 'Conflict', message }), { times: 2 });
    expect(await create('Counted')).toMatchObject({ status: 201, body: { slug: 'counted' } });
    answerWrites(status(409, { reason: 'Conflict', message }));
    expect(await create('Never counted')).toMatchObject({ status: 503, body: { code: 'UNAVAILABLE' } });
    proxy.fault = () => null;
    expect(await create('Counted')).toMatchObject({ status: 201, body: { slug: 'counted-2' } });
  });

  test('a quota that is used up is reported in the words of the API', async () => {
    const message = 'destinations.posthorn.dev "a" is forbidden: exceeded quota: posthorn, requested: count/destinations.posthorn.dev=1';
    answerWrites(status(403, { reason: 'Forbidden', message }));
    const { status: code, body } = await create('One too many');
    expect([code, body.code]).toEqual([403, 'FORBIDDEN']);
    expect(body.message).toMatch(/^The organization has destinations, as many as its plan \(enterprise\) or its limit allows/);
  });

  test('a quota of Secrets that is used up is reported, and leaves nothing behind', async () => {
    const message = 'secrets "posthorn-a-abc" is forbidden: exceeded quota: team-a, requested: count/secrets=1, used: count/secrets=9';
    answerWrites(status(403, { reason: 'Forbidden', message }), { plural: 'secrets' });
    const body = { name: 'Without Secret', url, authType: 'bearer', authConfig: { token: 'a-long-token-0000001' } };
    const answer = await world.request('POST', '/api/destinations', { body });
    expect([answer.status, answer.body]).toEqual([
      403,
      { error: 'Forbidden', code: 'FORBIDDEN', message: "A quota of the organization's namespace in the cluster is used up." },
    ]);
    expect((await world.request('GET', '/api/destinations/without-secret')).status).toBe(404);
  });

  test('a policy that refuses is reported in its own words', async () => {
    const said = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: the host elsewhere.example is not among those allowed";
    const message = `destinations.posthorn.dev "a" is forbidden: ${said}`;
    answerWrites(status(422, { reason: 'Invalid', message, details: { causes: [{ message: said }] } }));
    const answer = await create('Elsewhere');
    expect([answer.status, answer.body]).toEqual([
      400,
      { error: 'Bad Request', code: 'VALIDATION_FAILED', message: 'the host elsewhere.example is not among those allowed.' },
    ]);
  });

  test('what others change again and again is 409, in the words of the API', async () => {
    const { body } = await create('Contested');
    answerWrites(status(409, { reason: 'Conflict', message: 'Operation cannot be fulfilled on destinations.posthorn.dev "contested"' }));
    const answer = await world.request('PATCH', `/api/destinations/${body.id}`, { body: { timeoutMs: 1234 } });
    expect([answer.status, answer.body.code]).toEqual([409, 'CONFLICT']);
    expect(answer.body.message).toBe('The destination is being changed by others at this moment; send the request again.');
  });

  test('a right that the API lacks is not reported as one that the caller lacks', async () => {
    const message = 'destinations.posthorn.dev "a" is forbidden: User "system:serviceaccount:posthorn-system:api" cannot patch resource';
    answerWrites(status(403, { reason: 'Forbidden', message }));
    const answer = await create('Not allowed');
    expect([answer.status, answer.body.code]).toEqual([500, 'INTERNAL']);
    expect(answer.text).not.toContain('serviceaccount');
    expect(world.logLines.join('\n')).toContain('serviceaccount');
  });

  test.each([
    [429, { headers: { 'retry-after': '7' } }, '7'],
    [500, { message: 'failed calling webhook "w": Post "https://10.96.0.12:443/": dial tcp' }, '1'],
    [503, { message: 'etcdserver: leader changed', details: { retryAfterSeconds: 3 } }, '3'],
    [401, { message: 'Unauthorized' }, '1'],
  ])(
    '%i of the API server is 503 with Retry-After, and no text of its own',
    async (code, { headers = {}, ...fields }: object & { headers?: object }, retryAfter) => {
      answerWrites({ ...status(code, fields), headers: { ...headers } });
      const answer = await create('Later');
      expect([answer.status, answer.body.code, answer.headers.get('retry-after')]).toEqual([503, 'UNAVAILABLE', retryAfter]);
      expect(answer.body.message).toBe('A service that this needs does not respond; send the request again later.');
    },
  );

  test('reads continue without it, credentials masked as ever, and writes are 503', async () => {
    const body = { name: 'Known', url, authType: 'bearer', authConfig: { token: 'a-long-token-0000001' } };
    const { body: made } = await world.request('POST', '/api/destinations', { body });
    const { body: source } = await world.request('POST', '/api/sources', { body: { name: 'Known' } });
    const { body: route } = await world.request('POST', '/api/routes', {
      body: { name: 'Known', sourceId: source.id, destinationIds: [made.id] },
    });
    takeAway();
    for (const idOrSlug of [made.id, made.slug])
      expect(await world.request('GET', `/api/destinations/${idOrSlug}`)).toMatchObject({ status: 200, body: made });
    for (const path of ['destinations', `sources/${source.id}`, `routes/${route.id}`, `routes/${route.id}/circuit-status`])
      expect([path, (await world.request('GET', `/api/${path}`)).status]).toEqual([path, 200]);
    expect((await world.request('PATCH', `/api/destinations/${made.id}`, { body: { name: 'New' } })).status).toBe(503);
    expect((await world.request('GET', '/api/destinations/nobody')).status).toBe(503);
  });

  test('tests, triggers, checks and circuits continue without it', async () => {
    await world.startWorker();
    const source = await world.create('sources');
    const destination = await world.create('destinations', { url: receiver.url });
    const route = await world.create('routes', { sourceId: source.id, destinationIds: [destination.id] });
    const channel = await world.create('notification-channels', { type: 'webhook', config: { url: 'https://127.0.0.1:1/' } });
    const filter = await world.create('filters', { conditions: [{ field: 'id', operator: 'equals', value: 7 }] });
    const transform = await world.create('transforms', { type: 'jsonata', code: 'payload.id' });
    const schema = await world.create('schemas', { jsonSchema: { type: 'object' } });
    const { cronJob } = await world.create('cron', { cronExpression: '0 6 * * *', url: receiver.url });
    const { data: eventType } = await world.create('event-types', { name: 'order.paid' });
    const payload = { id: 7 };
    takeAway();
    for (const idOrSlug of [eventType.id, 'order.paid'])
      expect((await world.request('GET', `/api/event-types/${idOrSlug}`)).body).toEqual({ data: eventType });
    const done: [string, object | undefined, object][] = [
      [`destinations/${destination.id}/test`, { payload }, { success: true, statusCode: 200 }],
      [`notification-channels/${channel.id}/test`, undefined, { success: false }],
      [`cron/${cronJob.id}/trigger`, undefined, { execution: { status: 'success', responseStatus: 200 } }],
      [`routes/${route.id}/reset-circuit`, undefined, { circuitState: 'closed' }],
      ['filters/test', { filterId: filter.id, payload }, { success: true, matches: true }],
      ['transforms/test', { transformId: transform.id, payload }, { success: true, output: 7 }],
      [`schemas/${schema.id}/validate`, { payload }, { valid: true }],
    ];
    for (const [path, body, answer] of done) {
      const { status: code, body: answered } = await world.request('POST', `/api/${path}`, { body });
      expect([path, code, answered]).toMatchObject([path, 200, answer]);
    }
  });
}
