import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { CronExecutions } from '../../../src/data/cron/cron-executions.ts';
import { eventually } from '../../support/eventually.ts';
import type { FacadeWorld } from '../facade-world.ts';

/** What explain reports of resources, with any store behind the API. */
export function describeExplainResources(start: () => Promise<FacadeWorld>): void {
  let world: FacadeWorld;
  let number = 0;
  beforeAll(async () => {
    world = await start();
    await world.addOrganization('stranger');
  });
  afterAll(() => world.stop());

  const explain = (id: string, key?: string) => world.request('GET', `/api/explain/${id}`, { key });
  const textOf = (body: { story: { what: string; text: string }[] }, what: string) =>
    body.story.filter((step) => step.what === what).map(({ text }) => text);
  const destination = (more: object = {}) => world.create('destinations', { url: 'https://hooks.example.com/in', ...more });

  /** One resource of each kind, by what creates it. */
  const made: [string, string, () => Promise<string>][] = [
    ['source', 'source', async () => (await world.create('sources')).id],
    ['destination', 'destination', async () => (await destination()).id],
    [
      'route',
      'route',
      async () => {
        const [source, { id }] = [await world.create('sources'), await destination()];
        return (await world.create('routes', { sourceId: source.id, destinationIds: [id] })).id;
      },
    ],
    ['filter', 'filter', async () => (await world.create('filters', { conditions: [{ field: 'a', operator: 'exists' }] })).id],
    ['transform', 'transform', async () => (await world.create('transforms', { code: '{"text": payload.id}' })).id],
    ['schema', 'schema', async () => (await world.create('schemas', { jsonSchema: { type: 'object' } })).id],
    [
      'cron job',
      'cron job',
      async () => (await world.create('cron', { cronExpression: '0 6 * * *', url: 'https://cron.example.com/run' })).cronJob.id,
    ],
    [
      'notification channel',
      'notification channel',
      async () =>
        (await world.create('notification-channels', { type: 'slack', config: { webhookUrl: 'https://hooks.slack.com/services/T0/B0/x' } }))
          .id,
    ],
    ['API key', 'API key', async () => (await world.create('api-keys', { role: 'viewer' })).apiKey.id],
  ];

  test.each(made)('a %s shows that it is ready, when it was created and who manages it', async (_, kind, make) => {
    const id = await make();
    await eventually(async () => expect((await explain(id)).body).toMatchObject({ id, kind, state: 'ready', waitsFor: null }));
    const { body } = await explain(id);
    expect(textOf(body, 'created')).toHaveLength(1);
    expect(textOf(body, 'managed')).toEqual(['It is managed through the API.']);
    expect(textOf(body, 'condition')).toContainEqual(expect.stringMatching(/^Ready is True \(/));
    const asStranger = await explain(id, await world.addKey('stranger'));
    expect([asStranger.status, asStranger.body.code]).toEqual([404, 'RESOURCE_NOT_FOUND']);
  });

  const collections: Readonly<Record<string, string>> = {
    schema: 'schemas',
    'cron job': 'cron',
    'notification channel': 'notification-channels',
    'API key': 'api-keys',
  };

  test.each(made)('the id of a deleted %s is explained as deleted, to its organization alone', async (name, kind, make) => {
    const id = await make();
    await eventually(async () => expect((await explain(id)).body).toMatchObject({ state: 'ready' }));
    const stranger = await world.addKey('stranger');
    expect((await world.request('DELETE', `/api/${collections[name] ?? `${name}s`}/${id}`)).status).toBeLessThan(300);
    // Nothing of a filter is published, so that nothing is kept.
    const known = kind !== 'filter';
    const expected = known
      ? { id, kind, state: 'deleted', summary: `The ${kind} was deleted.`, waitsFor: null, next: null }
      : { code: 'RESOURCE_NOT_FOUND' };
    await eventually(async () => expect((await explain(id)).body).toMatchObject(expected));
    const asStranger = await explain(id, stranger);
    expect([asStranger.status, asStranger.body.code]).toEqual([404, 'RESOURCE_NOT_FOUND']);
  });

  test('only admins see that an API key is deleted', async () => {
    const { id } = (await world.create('api-keys', { role: 'viewer' })).apiKey;
    await eventually(async () => expect((await explain(id)).body).toMatchObject({ state: 'ready' }));
    await world.request('DELETE', `/api/api-keys/${id}`);
    await eventually(async () => expect((await explain(id)).body).toMatchObject({ state: 'deleted' }));
    expect((await explain(id, await world.addKey('acme', { role: 'developer' }))).status).toBe(403);
  });

  test('an organization shows its plan, its backlog and what has ended in the last hour, to its members alone', async () => {
    const id = (await world.request('GET', '/api/organizations')).body.data[0].id;
    const { status, body } = await explain(id);
    expect([status, body]).toMatchObject([200, { id, kind: 'organization', state: 'ready', waitsFor: null, next: null, advice: [] }]);
    expect(body.summary).toBe(
      'The organization "acme" has the plan enterprise. Deliveries and messages not ended: 0, failed in the last hour: 0.',
    );
    expect(textOf(body, 'deliveries')).toEqual(['In the last hour 0 deliveries arrived, and 0 deliveries failed for good.']);
    expect(textOf(body, 'messages')).toEqual(['In the last hour 0 messages arrived, and 0 messages failed for good.']);
    const asStranger = await explain(id, await world.addKey('stranger'));
    expect([asStranger.status, asStranger.body.code]).toEqual([404, 'RESOURCE_NOT_FOUND']);
  });

  test('an API key is explained to admins alone', async () => {
    const { id } = (await world.create('api-keys', { role: 'viewer' })).apiKey;
    for (const each of [id, `key_${'a'.repeat(26)}`]) {
      const { status, body } = await explain(each, await world.addKey('acme', { role: 'viewer' }));
      expect([status, body.code]).toEqual([403, 'FORBIDDEN']);
    }
  });

  test('a route that is not ready shows the condition that is false, and who manages it', async () => {
    const metadata = { name: 'unresolved', namespace: 'acme' };
    await world.store.apply(
      { kind: 'Route', metadata, spec: { sourceRef: { name: 'nobody' }, destinationRefs: [] } },
      { manager: 'argocd' },
    );
    const id = await eventually(async () => {
      const { body } = await world.request('GET', '/api/routes/unresolved');
      expect(body.id).toMatch(/^rte_/);
      return body.id as string;
    });
    const body = await eventually(async () => {
      const answer = await explain(id);
      expect(textOf(answer.body, 'condition')).toContainEqual(expect.stringMatching(/^Ready is False \(SourceNotFound\)/));
      return answer.body;
    });
    expect(body.state).toBe('not_ready');
    expect(textOf(body, 'managed')).toEqual([expect.stringContaining('argocd')]);
    expect(body.summary).toMatch(/is not ready\. .+/);
    expect(body.advice[0].command).toContain(`"$URL/api/routes/${id}"`);
  });

  test('a source and a destination name the routes that refer to them, and what is disabled says how it is enabled', async () => {
    const [source, target] = [await world.create('sources'), await destination({ isActive: false })];
    expect((await explain(source.id)).body.advice).toMatchObject([{ text: expect.stringContaining('Make a route') }]);
    const route = await world.create('routes', { sourceId: source.id, destinationIds: [target.id] });
    await eventually(async () => {
      for (const { id } of [source, target]) {
        const { body } = await explain(id);
        expect(body.story).toContainEqual(
          expect.objectContaining({
            what: 'used_by',
            text: `Used by: 1 route (${route.slug}).`,
            data: { kind: 'route', total: 1, names: [{ id: route.id, name: route.slug }] },
          }),
        );
      }
    });
    await eventually(async () => expect((await explain(target.id)).body.state).toBe('disabled'));
    const { body } = await explain(target.id);
    const [{ command }] = body.advice;
    expect(command).toContain(`-X PATCH "$URL/api/destinations/${target.id}"`);
    expect(command).toContain(`-d '{"isActive":true}'`);
    expect(textOf(body, 'deliveries')).toEqual(['No delivery to it has ended yet.']);
    expect(textOf(body, 'backlog')).toEqual(['Deliveries not ended: 0, after a failed attempt: 0.']);
    expect((await world.request('PATCH', `/api/destinations/${target.id}`, { body: { isActive: true } })).status).toBe(200);
    await eventually(async () => expect((await explain(target.id)).body).toMatchObject({ state: 'ready', advice: [] }));
  });

  test.each([
    [
      'cron job',
      async () =>
        (await world.create('cron', { cronExpression: '0 6 * * *', url: 'https://cron.example.com/run', isActive: false })).cronJob.id,
      'cron',
    ],
    [
      'event type',
      async () => (await world.create('event-types', { name: `order.off${++number}`, isEnabled: false })).data.id,
      'event-types',
    ],
    ['source', async () => (await world.create('sources', { isActive: false })).id, 'sources'],
    [
      'notification channel',
      async () =>
        (
          await world.create('notification-channels', {
            type: 'slack',
            config: { webhookUrl: 'https://hooks.slack.com/services/T0/B0/x' },
            isActive: false,
          })
        ).id,
      'notification-channels',
    ],
  ])('a disabled %s is enabled by what its advice sends', async (noun, make, collection) => {
    const id = await make();
    const body = await eventually(async () => {
      const answer = await explain(id);
      expect(answer.body.state).toBe('disabled');
      return answer.body;
    });
    expect(body.next).toBeNull();
    const [{ text, command }] = body.advice;
    expect(text).toBe(`Enable the ${noun}.`);
    expect(command).toContain(`-X PATCH "$URL/api/${collection}/${id}"`);
    const sent = JSON.parse(/-d '(.*)'$/.exec(command)?.[1] ?? '');
    expect((await world.request('PATCH', `/api/${collection}/${id}`, { body: sent })).status).toBe(200);
    await eventually(async () => expect((await explain(id)).body.state).toBe('ready'));
  });

  test('a cron job that is not in force has no next run', async () => {
    const metadata = { name: 'not-in-force', namespace: 'acme', annotations: { 'posthorn.dev/id': 'dst_of-another-kind' } };
    const spec = { schedule: '0 6 * * *', url: 'https://cron.example.com/run' };
    await world.store.apply({ kind: 'HttpCronJob', metadata, spec }, { manager: 'argocd' });
    const id = await eventually(async () => {
      const { body } = await world.request('GET', '/api/cron/not-in-force');
      expect((await explain(body.cronJob.id)).body.state).toBe('not_ready');
      return body.cronJob.id as string;
    });
    expect((await explain(id)).body.next).toBeNull();
  });

  test('a cron job whose last run failed shows it, with the execution, and when it runs next', async () => {
    const { cronJob } = await world.create('cron', { cronExpression: '0 6 * * *', url: 'https://cron.example.com/run' });
    const org = await world.organizationId('acme');
    const executions = new CronExecutions({ redis: world.redis.client, prefix: 'test:' });
    const id = `exec_${'0'.repeat(9)}${'a'.repeat(16)}`;
    // Before the job was created: steps are listed in the order of their times.
    const startedAtMs = Date.now() - 3_600_000;
    const times = { startedAtMs, completedAtMs: startedAtMs + 500 };
    await executions.write({
      ...times,
      id,
      jobId: cronJob.id,
      org,
      status: 'failed',
      responseStatus: 500,
      errorMessage: 'The response is 500.',
      latencyMs: 500,
      responseBody: null,
    });
    const job = await eventually(async () => {
      const { body } = await explain(cronJob.id);
      expect(textOf(body, 'execution')).toHaveLength(1);
      return body;
    });
    expect(job.story.slice(0, 2)).toMatchObject([{ what: 'execution' }, { what: 'created' }]);
    expect(job.next).toMatchObject({ what: 'run', at: expect.stringMatching(/T06:00:00\.000Z$/) });
    expect(job.advice[0].command).toContain(`/api/cron/${cronJob.id}/trigger`);
    const { status, body } = await explain(id);
    expect([status, body]).toMatchObject([200, { kind: 'cron execution', state: 'failed', summary: expect.stringContaining('500') }]);
    expect(textOf(body, 'execution')).toEqual(['The execution failed after 500 ms: the receiver returned 500. The response is 500.']);
    expect((await explain(id, await world.addKey('stranger'))).status).toBe(404);
  });

  test.each([
    'rte_unknown',
    `dst_${'a'.repeat(26)}`,
    `evt_00${'a'.repeat(25)}`,
    `exec_${'a'.repeat(25)}`,
    `app_${'a'.repeat(26)}`,
    `ep_${'a'.repeat(26)}`,
    `sub_${'a'.repeat(26)}`,
    'nonsense',
    '__proto__',
    'org_abc',
  ])('%s is 404 with a code', async (id) => {
    const { status, body } = await explain(id);
    expect([status, body.code]).toEqual([404, 'RESOURCE_NOT_FOUND']);
    expect(body.message).toContain(id);
  });
}
