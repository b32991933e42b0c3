import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { cronKeys } from '../../src/data/cron/cron-keys.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/ports.ts';
import type { Program } from '../support/program.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { type ControlPlaneWorld, startControlPlaneWorld } from './control-plane-world.ts';
import { Shop } from './manifests.ts';
import { RestClient } from './rest.ts';
import { startStandaloneWorld } from './standalone-world.ts';
import type { Manifest, World } from './world.ts';

const keys = cronKeys('posthorn:');
const minuteMs = 60_000;
const jobs = Array.from({ length: 20 }, (_, i) => `job-${i}`);

function job(namespace: string, name: string, schedule: string, url: string): Manifest {
  const spec = { schedule, url: `${url}/${name}`, timeoutMs: 30_000 };
  return { apiVersion: 'posthorn.dev/v1alpha1', kind: 'HttpCronJob', metadata: { name, namespace }, spec };
}
/** A minute that leaves the time to make what is to run in it. */
const comingMinute = (): number => Math.ceil((Date.now() + 20_000) / minuteMs) * minuteMs;
/** Schedule of these minutes alone, whatever else takes its time. */
const scheduleAt = (...slotsMs: number[]): string => `${slotsMs.map((ms) => new Date(ms).getUTCMinutes()).join()} * * * *`;
const until = (ms: number) => new Promise((resolve) => setTimeout(resolve, Math.max(0, ms - Date.now())));
/** Requests per path. */
function requestsOf(receiver: Receiver): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { path } of receiver.requests) counts[path] = (counts[path] ?? 0) + 1;
  return counts;
}
const ofEach = (count: number) => Object.fromEntries(jobs.map((name) => [`/${name}`, count]));

describe('cron jobs in Kubernetes', () => {
  const shop = new Shop('cron');
  let world: ControlPlaneWorld;
  let receiver: Receiver;
  let silent: Receiver;
  let rest: RestClient;
  let first: number;
  let controllers: Program[];
  let workers: Program[];

  beforeAll(async () => {
    world = await startControlPlaneWorld();
    receiver = await startReceiver();
    silent = await startReceiver(() => undefined);
    const port = await freePort();
    rest = new RestClient(`http://127.0.0.1:${port}`, shop.apiKey);
    controllers = [world.start('controller')];
    await controllers[0]?.waitForOutput(/controllers are running/, 60_000);
    controllers.push(world.start('controller'));
    workers = [world.start('delivery'), world.start('delivery')];
    world.start('api', { port });
    const organization = shop.organization(['127.0.0.0/8']);
    await world.apply([organization]);
    await world.waitUntilReady(organization);
    await world.apply([shop.apiKeyManifest]);
    // Again where a slow machine has not made them all before the first slot.
    do {
      first = comingMinute();
      receiver.requests.length = silent.requests.length = 0;
      const schedule = scheduleAt(first, first + minuteMs, first + 2 * minuteMs);
      const manifests = jobs.map((name) => job('cron', name, schedule, receiver.url));
      manifests.push(job('cron', 'stuck', schedule, silent.url));
      await world.apply(manifests);
      for (const manifest of manifests) await world.waitUntilReady(manifest);
    } while (Date.now() >= first);
    await eventually('the API to be ready', 60_000, async () => (await rest.send('GET', '/api/cron')).status === 200);
  }, 180_000);
  afterAll(async () => {
    await world?.stop();
    await Promise.all([receiver, silent].map((each) => each?.close()));
  });

  const executions = async (name: string) => (await rest.send('GET', `/api/cron/${name}/executions?limit=100`)).body.executions;

  test('cron jobs in Kubernetes run once per slot while the scheduler and all workers are killed, and while the API server is away', async () => {
    /** Waits until all jobs have run in as many slots: made up late rather than lost, and never twice. */
    const slotsRun = async (count: number): Promise<void> => {
      await until(first + (count - 1) * minuteMs);
      await eventually(`the runs of slot ${count}`, 50_000, () => receiver.requests.length >= count * jobs.length);
      expect(requestsOf(receiver)).toEqual(ofEach(count));
    };
    const historyOf = async (name: string, count: number): Promise<string[]> =>
      eventually(`the records of ${count} runs of ${name}`, 30_000, async () => {
        const history: string[] = (await executions(name)).map(({ status }: { status: string }) => status);
        return history.filter((status) => status === 'success' || status === 'failed').length >= count ? history : undefined;
      });

    await slotsRun(1);
    await silent.arrived(1);
    // Killed before it is recorded, a run that has arrived would be lost, too.
    await historyOf('job-0', 1);
    for (const worker of workers) worker.signal('SIGKILL');
    world.start('delivery');
    const turn = await world.redis.client.get(keys.turn);
    await until(first + minuteMs - 1000);
    // The first of the two leads and has the lock.
    controllers[0]?.signal('SIGKILL');
    await eventually('the turn of the other', 30_000, async () => {
      const now = await world.redis.client.get(keys.turn);
      return now !== null && now !== turn;
    });
    await slotsRun(2);
    expect(await historyOf('job-0', 2)).toEqual(['success', 'success']);
    expect((await historyOf('stuck', 1)).at(-1)).toBe('failed');
    expect((await executions('stuck')).at(-1)).toMatchObject({ error_message: expect.stringContaining('worker_lost') });

    // The leader ends without its Lease, and is started again as a Deployment does.
    await world.controlPlane.stopApiServer();
    world.start('controller');
    await slotsRun(3);
    await silent.arrived(3);
    expect(requestsOf(silent)).toEqual({ '/stuck': 3 });
    await world.controlPlane.startApiServer();
  }, 300_000);

  test('cron jobs in Kubernetes show the last and the next slot in their status, and leave nothing when they or their organization are deleted', async () => {
    const path = '/apis/posthorn.dev/v1alpha1/namespaces/cron/httpcronjobs/job-1';
    await eventually('the status to have both times', 90_000, async () => {
      const { status } = (await world.controlPlane.request('GET', path)) as { status: Record<string, string> };
      return status['lastScheduleTime'] !== undefined && status['nextScheduleTime'] !== undefined;
    });
    const { id } = (await rest.send('GET', '/api/cron/job-1')).body.cronJob;
    const left = (of: string) => world.redis.client.keys(`posthorn:{cron:${of}}:[^g]*`);
    expect(await left(id)).not.toEqual([]);
    await world.controlPlane.request('DELETE', path);
    await eventually('its history to be gone', 90_000, async () => (await left(id)).length === 0);
    await world.remove(shop.organization([]));
    // The last that is forgotten of a job.
    await eventually('all jobs to be forgotten', 60_000, async () => (await world.redis.client.hlen(keys.slots)) === 0);
    expect(await left('cron_*')).toEqual([]);
  }, 300_000);
});

describe('cron jobs in standalone', () => {
  const ends: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end();
  });

  test('cron jobs in standalone run once per slot, made by the API or by a manifest', async () => {
    const shop = new Shop('cron');
    const world: World = await startStandaloneWorld();
    ends.push(() => world.stop());
    const receiver = await startReceiver();
    ends.push(() => receiver.close());
    const organization = shop.organization(['127.0.0.0/8']);
    await world.apply([organization]);
    await world.waitUntilReady(organization);
    await world.apply([shop.apiKeyManifest]);
    await world.waitUntilReady(shop.apiKeyManifest);
    const rest = new RestClient(world.url, shop.apiKey);
    const slot = comingMinute();
    const manifest = job('cron', 'by-manifest', scheduleAt(slot), receiver.url);
    await world.apply([manifest]);
    await world.waitUntilReady(manifest);
    const made = await rest.send('POST', '/api/cron', { name: 'By API', cronExpression: scheduleAt(slot), url: `${receiver.url}/by-api` });
    expect(made.status).toBe(201);
    expect(made.body.cronJob.nextRunAt).toBe(new Date(slot).toISOString().slice(0, 19).replace('T', ' '));
    await until(slot);
    await eventually('both to have run', 30_000, () => receiver.requests.length >= 2);
    expect(requestsOf(receiver)).toEqual({ '/by-api': 1, '/by-manifest': 1 });
    const executions = await eventually('the record of the run', 30_000, async () => {
      const found = (await rest.send('GET', '/api/cron/by-api/executions')).body.executions;
      return found[0]?.status === 'running' ? undefined : found;
    });
    expect(executions).toEqual([expect.objectContaining({ status: 'success', response_status: 200, response_body: 'ok' })]);
    const listed = [
      { name: 'By API', lastRunAt: expect.any(String), nextRunAt: new Date(slot + 60 * minuteMs).toISOString() },
      { name: 'by-manifest', lastRunAt: expect.any(String) },
    ];
    await eventually(async () => expect((await rest.send('GET', '/api/cron')).body.cronJobs).toMatchObject(listed));
    expect((await rest.send('POST', '/api/cron/by-manifest/trigger')).body.execution).toMatchObject({
      status: 'success',
      responseStatus: 200,
    });
  }, 240_000);
});
