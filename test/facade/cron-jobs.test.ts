import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { CronExecutions } from '../../src/data/cron/cron-executions.ts';
import { eventually } from '../support/eventually.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { type FacadeWorld, type RequestOptions, startFacadeWorld } from './facade-world.ts';
import { describeCronJobs } from './suites/cron-jobs.ts';

describeCronJobs(() => startFacadeWorld());

let world: FacadeWorld;
const ends: (() => Promise<unknown>)[] = [];
const iso = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
const wanted = { name: 'Report', cronExpression: '0 6 * * *', url: 'https://reports.example/run' };

beforeAll(async () => {
  world = await startFacadeWorld();
  await world.startWorker();
  await world.addOrganization('free', 'free');
});
afterAll(() => world.stop());
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

const cron = (method: string, path = '', options?: RequestOptions) => world.request(method, `/api/cron${path}`, options);
async function receiver(answer?: Parameters<typeof startReceiver>[0]): Promise<Receiver> {
  const started = await startReceiver(answer);
  ends.push(() => started.close());
  return started;
}
async function made(body: object = {}): Promise<string> {
  const created = await cron('POST', '', { body: { ...wanted, ...body } });
  expect(created.status).toBe(201);
  return created.body.cronJob.id;
}
const read = async (id: string) => (await cron('GET', `/${id}`)).body.cronJob;

describe('cron jobs', () => {
  test('cron jobs are listed all at once, up to 1000 by name', async () => {
    await world.addOrganization('many');
    const key = await world.addKey('many');
    const names = Array.from({ length: 1001 }, (_, i) => `job-${String(i).padStart(4, '0')}`);
    for (const name of names.toReversed())
      await world.store.create(
        { kind: 'HttpCronJob', metadata: { name, namespace: 'many' }, spec: { schedule: '0 6 * * *', url: wanted.url } },
        { manager: 'kubectl' },
      );
    await eventually(async () => expect((await cron('GET', '/job-0000', { key })).status).toBe(200));
    const { body } = await cron('GET', '', { key });
    expect(body.cronJobs.map(({ slug }: { slug: string }) => slug)).toEqual(names.slice(0, 1000));
    expect((await cron('GET', '?search=job-1000', { key })).body.cronJobs).toHaveLength(1);
  });

  test('useStaticIp needs a paid plan', async () => {
    const key = await world.addKey('free');
    const refused = await cron('POST', '', { key, body: { ...wanted, useStaticIp: true } });
    expect([refused.status, refused.body]).toEqual([403, { error: 'useStaticIp needs a paid plan.' }]);
    const id = (await cron('POST', '', { key, body: wanted })).body.cronJob.id;
    expect((await cron('PATCH', `/${id}`, { key, body: { useStaticIp: true } })).status).toBe(403);
  });
});

describe('errors have the text alone', () => {
  test.each<[string, object, RegExp]>([
    ['no name', { name: undefined }, /^name /],
    ['no expression', { cronExpression: undefined }, /^cronExpression /],
    ['no url', { url: undefined }, /^url /],
    ['a field of the expression that is out of bounds', { cronExpression: '0 24 * * *' }, /^cronExpression hour: must be from 0 to 23/],
    ['another form', { cronExpression: '@daily' }, /^cronExpression must have 5 fields/],
    ['seconds', { cronExpression: '0 0 6 * * *' }, /^cronExpression must have 5 fields/],
    ['weekday 7', { cronExpression: '0 0 * * 7' }, /^cronExpression day of week/],
    ['a wrong URL', { url: 'reports.example' }, /^url /],
    ['an unknown zone', { timezone: 'Mars/Olympus' }, /^timezone /],
    ['a timeout that is too long', { timeoutMs: 60_001 }, /^timeoutMs /],
    ['an unknown method', { method: 'TRACE' }, /^method /],
    ['headers that are no map', { headers: ['a'] }, /^headers/],
    ['a header that is ours', { headers: { 'X-Posthorn-Cron': '1' } }, /X-Posthorn-Cron|headers/i],
    ['a payload that is no text', { payload: { a: 1 } }, /^payload /],
    ['an unknown field', { cron: '* * * * *' }, /unknown field "cron"/],
  ])('400 for %s', async (_, change, error) => {
    const before = (await cron('GET')).body.cronJobs.length;
    const answer = await cron('POST', '', { body: { ...wanted, name: 'Refused', ...change } });
    expect([answer.status, Object.keys(answer.body)]).toEqual([400, ['error']]);
    expect(answer.body.error).toMatch(error);
    expect(answer.headers.get('x-error-code')).toMatch(/^[A-Z_]+$/);
    expect((await cron('GET')).body.cronJobs).toHaveLength(before);
  });

  test('401, 403, 404, 405, 413, 415 and malformed JSON as well, on both paths', async () => {
    const viewer = await world.addKey('acme', { role: 'viewer' });
    const cases: [number, string, string, RequestOptions][] = [
      [401, 'GET', '/api/cron', { key: null }],
      [401, 'GET', '/api/organizations/acme/cron?search=a', { key: 'ph_wrong' }],
      [403, 'POST', '/api/cron', { key: viewer, body: wanted }],
      [404, 'GET', '/api/cron/nothing', {}],
      [404, 'PATCH', '/api/cron/nothing', { body: {} }],
      [404, 'DELETE', '/api/cron/nothing', {}],
      [404, 'POST', '/api/cron/nothing/trigger', {}],
      [404, 'GET', '/api/cron/nothing/executions', {}],
      [404, 'GET', '/api/organizations/free/cron', {}],
      [404, 'GET', '/api/cron/a/b/c', {}],
      [405, 'PUT', '/api/cron', {}],
      [413, 'POST', '/api/cron', { rawBody: `"${'a'.repeat(1_100_000)}"` }],
      [415, 'POST', '/api/cron', { rawBody: 'a=b', headers: { 'content-type': 'text/plain' } }],
      [400, 'POST', '/api/cron', { rawBody: '{' }],
      [400, 'GET', '/api/cron?isActive=maybe', {}],
      [400, 'GET', '/api/cron/report/executions?limit=101', {}],
      [400, 'GET', '/api/cron/report/executions?limit=0', {}],
    ];
    for (const [status, method, path, options] of cases) {
      const answer = await world.request(method, path, options);
      expect([path, answer.status, answer.body]).toEqual([path, status, { error: expect.any(String) }]);
      expect(answer.headers.get('x-error-code')).not.toBeNull();
    }
  });
});

test('beyond the rate limit the answer is 429 in the same form', async () => {
  const key = await world.addKey('free');
  await cron('GET', '', { key });
  for (const counter of await world.redis.client.keys('test:{rate:*}')) await world.redis.client.set(counter, 5000, 'PX', 60_000);
  const answer = await cron('GET', '', { key });
  expect([answer.status, answer.body]).toEqual([429, { error: expect.any(String) }]);
  expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
  expect(answer.headers.get('x-error-code')).toBe('RATE_LIMITED');
});

describe('a trigger', () => {
  test.each([
    ['\ufeff{"report": 1}', 'application/json'],
    ['{"report": 1}', 'application/json'],
    ['\ufeffplain words', 'text/plain'],
  ])('a trigger sends the payload %j as it is, as %s', async (payload, contentType) => {
    const to = await receiver((response) => response.end());
    const id = await made({ name: 'Typed', url: to.url, method: 'POST', payload });
    expect((await cron('POST', `/${id}/trigger`)).status).toBe(200);
    expect(to.requests[0]?.headers['content-type']).toBe(contentType);
    expect(to.requests[0]?.body.equals(Buffer.from(payload))).toBe(true);
  });

  test('a trigger runs the job at once, also while it is not active, and records it', async () => {
    const to = await receiver((response) => response.writeHead(201).end('done'));
    const id = await made({
      name: 'Triggered',
      url: `${to.url}/run?a=1`,
      method: 'PATCH',
      headers: { 'X-Shop': 'north', authorization: 'Bearer canary' },
      payload: '{"report": 1}',
    });
    await cron('PATCH', `/${id}`, { body: { isActive: false } });
    const answer = await cron('POST', `/${id}/trigger`);
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({
      execution: { id: expect.stringMatching(/^exec_/), status: 'success', responseStatus: 201, latencyMs: expect.any(Number) },
    });
    expect(to.requests[0]).toMatchObject({
      method: 'PATCH',
      path: '/run?a=1',
      headers: {
        'content-type': 'application/json',
        'x-shop': 'north',
        authorization: 'Bearer canary',
        'x-posthorn-cron-job': id,
        'x-posthorn-execution': answer.body.execution.id,
      },
    });
    expect(String(to.requests[0]?.body)).toBe('{"report": 1}');
    expect((await cron('GET', `/${id}/executions`)).body).toEqual({
      executions: [
        {
          id: answer.body.execution.id,
          cron_job_id: id,
          status: 'success',
          response_status: 201,
          response_body: 'done',
          error_message: null,
          latency_ms: answer.body.execution.latencyMs,
          started_at: iso,
          completed_at: iso,
        },
      ],
    });
    expect(await read(id)).toMatchObject({ lastRunAt: iso, lastRunStatus: 'success' });
    expect(world.logLines.join('')).not.toContain('canary');
  });

  test('a trigger that fails is answered 200 with the error: a status, a timeout, an address that is not allowed', async () => {
    const failing = await receiver((response) => response.writeHead(503, { 'x-step': '7' }).end('busy'));
    const silent = await receiver(() => undefined);
    const run = async (body: object) => (await cron('POST', `/${await made({ name: 'Failing', ...body })}/trigger`)).body.execution;
    expect(await run({ url: failing.url })).toMatchObject({ status: 'failed', responseStatus: 503, error: expect.stringContaining('503') });
    expect(await run({ url: silent.url, timeoutMs: 500 })).toMatchObject({
      status: 'failed',
      responseStatus: null,
      error: expect.stringContaining('500 ms'),
    });
    expect(await run({ url: 'http://169.254.169.254/' })).toMatchObject({
      status: 'failed',
      responseStatus: null,
      error: expect.stringContaining('not allowed'),
    });
  });

  test('a run that failed has the headers of both sides, masked, and its phases in the history; one that went well has none', async () => {
    const to = await receiver((response, number) => response.writeHead(number === 1 ? 503 : 200, { 'x-step': '7' }).end('busy'));
    const id = await made({ name: 'Detailed', url: to.url, headers: { 'X-Shop': 'north', authorization: 'Bearer canary-of-cron' } });
    await cron('POST', `/${id}/trigger`);
    await cron('POST', `/${id}/trigger`);
    const { executions } = (await cron('GET', `/${id}/executions`)).body;
    expect(executions.map(({ status, detail }: { status: string; detail?: object }) => [status, detail !== undefined])).toEqual([
      ['success', false],
      ['failed', true],
    ]);
    expect(executions[1].detail).toMatchObject({
      requestHeaders: { 'x-shop': 'north', authorization: '••••', 'x-posthorn-execution': executions[1].id },
      responseHeaders: { 'x-step': '7' },
      peerAddress: new URL(to.url).host,
      responseBytes: 4,
      phases: { firstByteMs: expect.any(Number) },
    });
  });

  test('a trigger of a large answer keeps 10 KiB, and 20 executions are listed unless more are requested', async () => {
    const to = await receiver((response) => response.end('x'.repeat(100_000)));
    const id = await made({ name: 'Large', url: to.url, method: 'GET' });
    await Promise.all(Array.from({ length: 6 }, () => cron('POST', `/${id}/trigger`)));
    const [newest] = (await cron('GET', `/${id}/executions?limit=1`)).body.executions;
    expect(newest.response_body).toBe('x'.repeat(10_240));
    for (let i = 0; i < 20; i++) await cron('POST', `/${id}/trigger`);
    const executions = (await cron('GET', `/${id}/executions`)).body.executions;
    expect(executions).toHaveLength(20);
    const times = executions.map((each: { started_at: string }) => each.started_at);
    expect(times).toEqual([...times].sort().reverse());
    const all = (await cron('GET', `/${id}/executions?limit=100`)).body.executions;
    expect(all).toHaveLength(26);
    const bodies = all.map((each: { response_body: string | null }) => each.response_body);
    expect(bodies.slice(0, 25)).toEqual(Array.from({ length: 25 }, () => 'x'.repeat(10_240)));
    expect(bodies[25]).toBeNull();
  });

  test('a trigger that was recorded shows its response body for as long as it is listed', async () => {
    const history = new CronExecutions({ redis: world.redis.client, prefix: 'test:' });
    const id = await made({ name: 'Listed' });
    const ended = {
      jobId: id,
      org: await world.organizationId('acme'),
      status: 'success',
      responseStatus: 200,
      errorMessage: null,
      latencyMs: 1,
    } as const;
    for (let i = 0; i < 101; i++) {
      const startedAtMs = Date.now();
      await history.write({ ...ended, id: `exec_${i}`, startedAtMs: startedAtMs + i, completedAtMs: startedAtMs, responseBody: `ok ${i}` });
    }
    const listed = (await cron('GET', `/${id}/executions?limit=100`)).body.executions;
    expect(listed.map((each: { response_body: string | null }) => each.response_body)).toEqual(
      Array.from({ length: 100 }, (_, i) => `ok ${100 - i}`),
    );
  });
});

test('deleting a job deletes its history, and a run that was under way writes nothing more', async () => {
  let finish: (() => void) | undefined;
  const to = await receiver((response) => {
    finish = () => response.end();
  });
  const id = await made({ name: 'Deleted', url: to.url });
  const triggered = cron('POST', `/${id}/trigger`);
  await to.arrived(1);
  const history = new CronExecutions({ redis: world.redis.client, prefix: 'test:' });
  const org = await world.organizationId('acme');
  await eventually(async () => expect(await history.newest(org, id, 10)).toMatchObject([{ status: 'running', completedAtMs: null }]));
  const answer = await cron('DELETE', `/${id}`);
  expect([answer.status, answer.body]).toEqual([200, { success: true }]);
  finish?.();
  expect((await triggered).body.execution.status).toBe('success');
  expect(await history.newest(org, id, 10)).toEqual([]);
  expect((await cron('GET', `/${id}`)).status).toBe(404);
});

test('a job that requests the id of a job of another organization neither shows nor deletes the runs of that one', async () => {
  const target = await receiver((response) => response.end('of acme'));
  const id = await made({ name: 'Wanted', url: target.url });
  await cron('POST', `/${id}/trigger`, { body: {} });
  await world.addOrganization('thief');
  const key = await world.addKey('thief');
  const metadata = { name: 'impostor', namespace: 'thief', annotations: { 'posthorn.dev/id': id } };
  await world.store.create(
    { kind: 'HttpCronJob', metadata, spec: { schedule: '0 6 * * *', url: wanted.url } },
    { manager: 'posthorn-api' },
  );
  await eventually(async () =>
    expect((await cron('GET', `/${id}`, { key })).body.cronJob).toMatchObject({ slug: 'impostor', lastRunAt: null, lastRunStatus: null }),
  );
  expect((await cron('GET', `/${id}/executions`, { key })).body).toEqual({ executions: [] });
  expect((await cron('GET', '', { key })).body.cronJobs).toContainEqual(
    expect.objectContaining({ slug: 'impostor', lastRunAt: null, lastRunStatus: null }),
  );
  expect((await cron('DELETE', `/${id}`, { key })).status).toBe(200);
  expect((await cron('GET', `/${id}/executions`)).body.executions).toMatchObject([{ response_body: 'of acme' }]);
  await cron('POST', `/${id}/trigger`, { body: {} });
  expect((await cron('GET', `/${id}/executions`)).body.executions).toHaveLength(2);
});
