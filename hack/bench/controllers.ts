// How long a fresh controller needs until every object is Ready, on a control plane of its own, and how much memory each object takes in a controller
// and in the API:
//   node hack/bench/controllers.ts [routes] [destinations] [quiet seconds]
// Prints one table. The API server and etcd run on the same cores.

import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { z } from 'zod';
import { type ControlPlane, startControlPlane } from '../../test/support/control-plane.ts';
import { freePort } from '../../test/support/ports.ts';
import { type Program, startProgram } from '../../test/support/program.ts';
import { startRedis } from '../../test/support/redis.ts';
import { buildProgram, builtProgram } from '../lib/built-program.ts';
import { bareRedisPipeline } from './lib/ceilings.ts';
import { concurrency, inParallel } from './lib/in-parallel.ts';
import { perSecond } from './lib/report.ts';

const [routes = 10_000, destinations = 10_000, quietSeconds = 60] = process.argv.slice(2).map(Number);
const namespace = 'bench';
const deadlineMs = 300_000;
/** What a process has begun with is done by then. */
const settleMs = 10_000;
const encryptionKeys = `bench:${randomBytes(32).toString('base64')}`;
const root = '/apis/posthorn.dev/v1alpha1';

const pageSchema = z.object({
  metadata: z.object({ continue: z.string().optional() }),
  items: z.array(
    z.object({
      metadata: z.object({ name: z.string(), resourceVersion: z.string(), generation: z.number() }),
      status: z
        .object({ observedGeneration: z.number(), conditions: z.array(z.object({ type: z.string(), status: z.string() })) })
        .optional(),
    }),
  ),
});
type Item = z.output<typeof pageSchema>['items'][number];

async function main(): Promise<void> {
  // What is measured is what the image holds.
  buildProgram();
  const plane = await startControlPlane({ crds: true });
  const redis = await startRedis();
  const agent = new Agent({ connections: concurrency, connect: { ca: readFileSync(plane.caFile) } });
  const programs: Program[] = [];
  try {
    const empty: Record<string, Memory> = {};
    for (const role of ['controller', 'api'] as const) {
      const { program, opsPort } = await begin(role, plane, redis.url);
      programs.push(program);
      await untilReady(opsPort, program);
      await sleep(settleMs);
      empty[role] = resident(program.pid);
      await program.stop();
    }
    const send = sender(plane, agent);
    const createdSeconds = await seconds(() => create(send));
    await sleep(5000);
    const listSeconds = await seconds(() => lists(send));

    const startedAt = performance.now();
    const cpuBefore = cpuSeconds();
    const controller = await begin('controller', plane, redis.url);
    programs.push(controller.program);
    await untilReconciled(controller.opsPort, controller.program);
    const before = await untilAllReady(send);
    const readySeconds = (performance.now() - startedAt) / 1000;
    const cpu = Object.entries(cpuSeconds()).map(([name, value]) => `${name} ${(value - (cpuBefore[name] ?? 0)).toFixed(1)}`);
    const rssAtReady = resident(controller.program.pid);
    console.error(`all reconciled after ${readySeconds.toFixed(1)} s; quiet for ${quietSeconds} s`);
    await sleep(quietSeconds * 1000);
    const after = new Map((await lists(send)).map(({ metadata }) => [metadata.name, metadata.resourceVersion]));
    const api = await begin('api', plane, redis.url);
    programs.push(api.program);
    await untilReady(api.opsPort, api.program);
    await lists(send);
    await sleep(settleMs);
    const objects = routes + destinations;
    const ofObjects = (pid: number, role: string): string => {
      const [filled, none] = [resident(pid), empty[role] ?? resident(pid)];
      const each = (megabytes: number): string => ((megabytes * 1024) / objects).toFixed(1);
      return `${none.now} MB → ${filled.now} MB, highest ${filled.peak} MB: ${each(filled.now - none.now)} KB each, ${each(filled.peak - none.peak)} KB at the highest`;
    };
    const written = before.filter(({ metadata }) => after.get(metadata.name) !== metadata.resourceVersion).length;
    console.table({
      'bare Redis pipeline': perSecond(await bareRedisPipeline()),
      'objects created': `${routes} routes, ${destinations} destinations in ${createdSeconds.toFixed(1)} s`,
      'raw list of both kinds (pages of 500)': `${listSeconds.toFixed(1)} s`,
      'process start to all Ready': `${readySeconds.toFixed(1)} s`,
      'processor seconds till then': cpu.join(', '),
      'status writes': `${((routes + destinations) / readySeconds).toFixed(0)}/s`,
      'resident memory of the controller then': `${rssAtReady.now} MB`,
      'of the controller without and with the objects': ofObjects(controller.program.pid, 'controller'),
      'of the API': ofObjects(api.program.pid, 'api'),
      [`objects written in the ${quietSeconds} s after`]: written,
    });
  } finally {
    await Promise.all(programs.map((program) => program.stop()));
    await redis.stop();
    await agent.destroy();
    await plane.stop();
  }
}

interface Running {
  program: Program;
  opsPort: number;
}

async function begin(role: 'controller' | 'api', plane: ControlPlane, redisUrl: string): Promise<Running> {
  const opsPort = await freePort();
  const environment = {
    KUBECONFIG: plane.kubeconfigPath,
    POSTHORN_REDIS_URL: redisUrl,
    POSTHORN_ENCRYPTION_KEYS: encryptionKeys,
    POSTHORN_HOST: '127.0.0.1',
    POSTHORN_PORT: String(await freePort()),
    POSTHORN_OPS_PORT: String(opsPort),
    POSTHORN_LOG_LEVEL: 'warn',
  };
  return { program: startProgram([role], environment, builtProgram), opsPort };
}

async function untilReady(opsPort: number, program: Program): Promise<void> {
  const endsAt = performance.now() + deadlineMs;
  while (performance.now() < endsAt) {
    const status = await request(`http://127.0.0.1:${opsPort}/readyz`).then(
      async ({ statusCode, body }) => {
        await body.dump();
        return statusCode;
      },
      () => 0,
    );
    if (status === 200) return;
    await sleep(200);
  }
  throw new Error(`not ready after ${deadlineMs} ms: ${program.output()}`);
}

type Send = (method: 'GET' | 'POST', path: string, body?: unknown) => Promise<unknown>;

function sender(plane: ControlPlane, agent: Agent): Send {
  return async (method, path, body) => {
    const response = await request(plane.url + path, {
      method,
      dispatcher: agent,
      headers: { authorization: `Bearer ${plane.token}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.body.text();
    if (response.statusCode >= 300) throw new Error(`${method} ${path} answered ${response.statusCode}: ${text}`);
    return JSON.parse(text);
  };
}

async function create(send: Send): Promise<void> {
  const object = (kind: string, name: string, spec: object): object => ({
    apiVersion: 'posthorn.dev/v1alpha1',
    kind,
    metadata: { name },
    spec,
  });
  const path = (plural: string): string => `${root}/namespaces/${namespace}/${plural}`;
  await send('POST', '/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
  await send('POST', `${root}/organizations`, object('Organization', 'bench', { namespace }));
  await send('POST', path('sources'), object('Source', 'orders', { provider: 'generic' }));
  await inParallel(destinations, (i) =>
    send(
      'POST',
      path('destinations'),
      object('Destination', `destination-${i}`, { type: 'http', http: { url: `https://receiver-${i}.example.com/hooks/orders` } }),
    ),
  );
  await inParallel(routes, (i) =>
    send(
      'POST',
      path('routes'),
      object('Route', `route-${i}`, { sourceRef: { name: 'orders' }, destinationRefs: [{ name: `destination-${i % destinations}` }] }),
    ),
  );
}

async function lists(send: Send): Promise<Item[]> {
  const items: Item[] = [];
  for (const plural of ['routes', 'destinations']) {
    let token: string | undefined = '';
    while (token !== undefined) {
      const page = pageSchema.parse(await send('GET', `${root}/${plural}?limit=500&continue=${encodeURIComponent(token)}`));
      items.push(...page.items);
      token = page.metadata.continue === '' ? undefined : page.metadata.continue;
    }
  }
  return items;
}

function isReady({ metadata, status }: Item): boolean {
  return (
    status?.observedGeneration === metadata.generation &&
    status.conditions.some(({ type, status: value }) => type === 'Ready' && value === 'True')
  );
}

/** All objects with the statuses that they have then. */
async function untilAllReady(send: Send): Promise<Item[]> {
  const endsAt = performance.now() + deadlineMs;
  for (;;) {
    const items = await lists(send);
    const notReady = items.filter((item) => !isReady(item)).length;
    if (notReady === 0) return items;
    if (performance.now() > endsAt) throw new Error(`${notReady} objects are not Ready after ${deadlineMs} ms`);
    await sleep(1000);
  }
}

/** By the controller's own metrics, so that looking costs the API server nothing. */
async function untilReconciled(opsPort: number, program: Program): Promise<void> {
  const endsAt = performance.now() + deadlineMs;
  let reportedAt = 0;
  while (performance.now() < endsAt) {
    await sleep(500);
    const text = await request(`http://127.0.0.1:${opsPort}/metrics`).then(
      ({ body }) => body.text(),
      () => '',
    );
    const value = (series: string): number =>
      Number(
        text
          .split('\n')
          .find((line) => line.startsWith(series))
          ?.slice(series.length) ?? Number.NaN,
      );
    const done = (kind: string): number => value(`posthorn_reconcile_total{kind="${kind}",result="success"}`);
    const waiting = value('posthorn_workqueue_depth{kind="Route"}') + value('posthorn_workqueue_depth{kind="Destination"}');
    if (performance.now() - reportedAt > 5000) {
      reportedAt = performance.now();
      console.error(`routes ${done('Route')}, destinations ${done('Destination')}, waiting ${waiting}, ${resident(program.pid).now} MB`);
    }
    if (done('Route') >= routes && done('Destination') >= destinations && waiting === 0) return;
  }
  throw new Error(`not all reconciled after ${deadlineMs} ms: ${program.output()}`);
}

/** Processor seconds that each process started by this one has used, by its name; and all that the machine has used. */
function cpuSeconds(): Record<string, number> {
  const ticksPerSecond = 100;
  const used: Record<string, number> = {};
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    const [, name = '', rest = ''] = /\((.*)\) (.*)/.exec(procFile(`${pid}/stat`)) ?? [];
    const fields = rest.split(' ').map(Number);
    if (fields[1] === process.pid) used[name] = ((fields[11] ?? 0) + (fields[12] ?? 0)) / ticksPerSecond;
  }
  const [user = 0, nice = 0, system = 0] = procFile('stat').split('\n')[0]?.split(/\s+/).slice(1).map(Number) ?? [];
  used['whole machine'] = (user + nice + system) / ticksPerSecond;
  return used;
}

function procFile(name: string): string {
  try {
    return readFileSync(`/proc/${name}`, 'utf8');
  } catch {
    return ''; // the process has ended
  }
}

/** Megabytes. */
interface Memory {
  now: number;
  peak: number;
}

function resident(pid: number): Memory {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const megabytes = (field: string): number => Math.round(Number(new RegExp(`${field}:\\s+(\\d+)`).exec(status)?.[1]) / 1024);
  return { now: megabytes('VmRSS'), peak: megabytes('VmHWM') };
}

async function seconds(run: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await run();
  return (performance.now() - startedAt) / 1000;
}

await main();
