import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, unlinkSync, writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { z } from 'zod';
import { type ConnectProxy, startConnectProxy } from '../support/connect-proxy.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/ports.ts';
import { childPids, type Program, startProgram } from '../support/program.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { RestClient } from './rest.ts';

const accepted = z.object({ eventId: z.string() });
const source = (name: string): string =>
  `apiVersion: posthorn.dev/v1alpha1\nkind: Source\nmetadata: {name: ${name}}\nspec: {provider: generic}\n`;

describe.each(['on one port', 'with ingest on a port of its own'])('standalone %s', (way) => {
  const hasIngestPort = way !== 'on one port';
  const directory = mkdtempSync(join(tmpdir(), 'posthorn-e2e-'));
  const manifests = join(directory, 'manifests');
  let environment: Record<string, string>;
  let url: string;
  let ingestUrl: string;
  let opsUrl: string;
  let program: Program;
  let rest: RestClient;
  let proxy: ConnectProxy;

  const start = async (): Promise<void> => {
    program = startProgram(['standalone', '--manifests', manifests, '--workers', '2'], environment);
    await program.waitForOutput(/^posthorn ready /m, 60_000);
  };
  const post = (name: string) =>
    fetch(`${ingestUrl}/ingest/default/${name}`, { method: 'POST', body: '{"n":1}', headers: { 'content-type': 'application/json' } });
  const statusOf = async (name: string): Promise<number> => (await post(name)).status;
  const becomes = (name: string, status: number) =>
    eventually(`/ingest/default/${name} to answer ${status}`, 30_000, async () => (await statusOf(name)) === status);
  const text = async (path: string): Promise<string> => (await fetch(url + path)).text();
  const metrics = async (): Promise<string> => (await fetch(`${opsUrl}/metrics`)).text();

  beforeAll(async () => {
    mkdirSync(manifests);
    writeFileSync(join(manifests, 'good.yaml'), source('good'));
    writeFileSync(join(manifests, 'broken.yaml'), `${source('beside')}---\nkind: [broken\n`);
    writeFileSync(join(manifests, 'refused.yaml'), source('refused').replace('generic', 'carrier-pigeon'));
    const port = await freePort();
    url = `http://127.0.0.1:${port}`;
    const ingestPort = hasIngestPort ? await freePort() : port;
    const opsPort = await freePort();
    opsUrl = `http://127.0.0.1:${opsPort}`;
    ingestUrl = `http://127.0.0.1:${ingestPort}`;
    proxy = await startConnectProxy();
    environment = {
      POSTHORN_PORT: String(port),
      ...(hasIngestPort && { POSTHORN_INGEST_PORT: String(ingestPort) }),
      POSTHORN_OPS_PORT: String(opsPort),
      POSTHORN_DATA_DIR: join(directory, 'data'),
      POSTHORN_EGRESS_PROXY_URL: proxy.url,
    };
    await start();
  });
  afterAll(async () => {
    await program?.stop();
    await proxy?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  test('prints its URL and the key that it has made, which works', async () => {
    const [, , key = ''] = /^posthorn ready (\S+) key (ph_\S+)$/m.exec(program.output()) ?? [];
    rest = new RestClient(url, key);
    const { status, headers } = await rest.send('GET', '/api/sources');
    // Its organization is enterprise, which has no limits.
    expect([status, headers.get('x-ratelimit-limit')]).toEqual([200, null]);
    for (const file of ['api-key', 'encryption-keys']) expect(statSync(join(directory, 'data', file)).mode & 0o777).toBe(0o600);
  });

  test('shows the address that it listens on in ingestUrl, whatever the Host header says', async () => {
    const port = Number(new URL(url).port);
    const headers = { host: 'evil.example', authorization: `Bearer ${readFileSync(join(directory, 'data', 'api-key'), 'utf8').trim()}` };
    const answer = await new Promise<string>((resolve, reject) => {
      get({ host: '127.0.0.1', port, path: '/api/sources', headers }, (response) => void textOf(response).then(resolve, reject)).on(
        'error',
        reject,
      );
    });
    expect(answer).toContain(`"ingestUrl":"http://localhost:${new URL(ingestUrl).port}/ingest/default/good"`);
    expect(answer).not.toContain('evil.example');
  });

  test('loads what it can of a manifests directory, and shows what is broken wherever one looks', async () => {
    for (const name of ['good', 'beside']) await becomes(name, 200);
    expect(await statusOf('refused')).toBe(404);
    expect(program.output()).toMatch(/^posthorn manifest error broken\.yaml: /m);
    expect(program.output()).toMatch(/^posthorn manifest error .*refused.*provider/m);
    expect(JSON.parse(await text('/readyz')).notes.manifests).toContain('broken.yaml');
    expect(await metrics()).toMatch(/posthorn_manifest_errors\{process="standalone"\} 2/);
  });

  test('deletes nothing while a file is broken, and what is gone once none is', async () => {
    unlinkSync(join(manifests, 'good.yaml'));
    await program.waitForOutput(/manifests loaded[\s\S]*manifests loaded/);
    expect(await statusOf('good')).toBe(200);
    writeFileSync(join(manifests, 'broken.yaml'), source('beside'));
    writeFileSync(join(manifests, 'refused.yaml'), source('repaired'));
    await becomes('repaired', 200);
    await becomes('good', 404);
    expect(await statusOf('beside')).toBe(200);
    await eventually(async () => expect(await metrics()).toMatch(/posthorn_manifest_errors\{process="standalone"\} 0/));
  });

  test('takes a new file and a changed one without a restart', async () => {
    writeFileSync(join(manifests, 'later.yaml'), source('later'));
    await becomes('later', 200);
    writeFileSync(join(manifests, 'later.yaml'), source('later').replace('generic', 'generic, enabled: false'));
    await becomes('later', 403);
  });

  test('the organization default is what a manifest says, and what it was when that is gone', async () => {
    const limitBecomes = (limit: string | null) =>
      eventually(`a limit of ${limit}`, 30_000, async () => {
        const { headers } = await rest.send('GET', '/api/sources');
        return headers.get('x-ratelimit-limit') === limit;
      });
    const spec = '{namespace: default, plan: free}';
    const organization = `apiVersion: posthorn.dev/v1alpha1\nkind: Organization\nmetadata: {name: default}\nspec: ${spec}\n`;
    writeFileSync(join(manifests, 'organization.yaml'), organization);
    await limitBecomes('1000');
    unlinkSync(join(manifests, 'organization.yaml'));
    await limitBecomes(null);
    writeFileSync(join(manifests, 'organization.yaml'), organization);
    await limitBecomes('1000');
    unlinkSync(join(manifests, 'organization.yaml'));
    await limitBecomes(null);
  });

  test('sends the requests of destinations and cron jobs with a static address through the egress proxy', async () => {
    // One for each: only so do the tunnels identify their owners.
    const [fixed, direct, fixedRun, directRun] = await Promise.all([startReceiver(), startReceiver(), startReceiver(), startReceiver()]);
    try {
      const destination = (name: string, to: Receiver, useStaticIp: boolean): string => {
        const route = `apiVersion: posthorn.dev/v1alpha1\nkind: Route\nmetadata: {name: ${name}}\nspec: {sourceRef: {name: beside}, destinationRefs: [{name: ${name}}]}\n`;
        const http = `{url: "${to.url}/${name}", useStaticIp: ${useStaticIp}}`;
        return `apiVersion: posthorn.dev/v1alpha1\nkind: Destination\nmetadata: {name: ${name}}\nspec: {http: ${http}}\n---\n${route}`;
      };
      writeFileSync(join(manifests, 'static.yaml'), `${destination('fixed', fixed, true)}---\n${destination('direct', direct, false)}`);
      // An event that comes before both routes are in force goes to one of them.
      await eventually('both routes to be in force', 30_000, async () => {
        await statusOf('beside');
        return fixed.requests.length > 0 && direct.requests.length > 0;
      });
      for (const [useStaticIp, to] of [
        [true, fixedRun],
        [false, directRun],
      ] as const) {
        const body = { name: `Run ${useStaticIp}`, cronExpression: '0 6 1 1 *', url: to.url, useStaticIp };
        const { cronJob } = (await rest.send('POST', '/api/cron', body)).body;
        const { execution } = (await rest.send('POST', `/api/cron/${cronJob.id}/trigger`)).body;
        expect(execution).toMatchObject({ status: 'success', responseStatus: 200 });
      }
      // Each worker opens its own.
      expect(new Set(proxy.tunnels)).toEqual(new Set([fixed, fixedRun].map(({ url: each }) => new URL(each).host)));
    } finally {
      unlinkSync(join(manifests, 'static.yaml'));
      await Promise.all([fixed, direct, fixedRun, directRun].map((receiver) => receiver.close()));
    }
  });

  test('refuses to share its data directory with another standalone', async () => {
    const second = startProgram(['standalone'], {
      ...environment,
      POSTHORN_PORT: String(await freePort()),
      POSTHORN_INGEST_PORT: '',
      POSTHORN_OPS_PORT: '',
    });
    expect(await second.ended).toBe(1);
    expect(second.output()).toContain('another posthorn standalone');
    expect(await statusOf('beside')).toBe(200);
  });

  test('shows no metrics on the ports of the API and of ingest, where anybody may ask, but health', async () => {
    for (const origin of [url, ingestUrl]) {
      expect((await fetch(`${origin}/metrics`)).status).toBe(404);
      for (const path of ['/livez', '/readyz']) expect((await fetch(origin + path)).status).toBe(200);
    }
  });

  test('shows the metrics of all its processes', async () => {
    const shown = await metrics();
    for (const process of ['standalone', 'controller', 'api', 'ingest', 'delivery-1', 'delivery-2'])
      expect(shown).toContain(`nodejs_eventloop_lag_seconds{process="${process}"}`);
    for (const name of [
      'posthorn_ingest_requests_total',
      'posthorn_delivery_outcomes_total',
      'posthorn_reconcile_total',
      'posthorn_queue_messages',
    ])
      expect(shown).toContain(`# TYPE ${name} `);
    expect(shown.match(/^# TYPE process_resident_memory_bytes /gm)).toHaveLength(1);
  });

  test('events are taken while the API answers nothing, and while it is dead', async () => {
    const [pid = 0] = childPids(program.pid, ' api');
    process.kill(pid, 'SIGSTOP');
    const unanswered = rest.send('GET', '/api/sources').catch(() => 'no answer');
    for (let i = 0; i < 20; i++) expect(await statusOf('beside')).toBe(200);
    process.kill(pid, 'SIGKILL');
    const [, ...statuses] = await Promise.all([unanswered, ...Array.from({ length: 20 }, () => statusOf('beside'))]);
    expect(new Set(statuses)).toEqual(new Set([200]));
    const answers = new Set<number>();
    await eventually('the api to be back', 30_000, async () => {
      answers.add(
        await rest.send('GET', '/api/sources').then(
          ({ status }) => status,
          () => 0,
        ),
      );
      expect(await statusOf('beside')).toBe(200);
      return answers.has(200);
    });
    // On one port a process is always there to report when to try again.
    if (!hasIngestPort) expect([...answers].filter((status) => status !== 200 && status !== 503)).toEqual([]);
  });

  test('a client that guesses keys is held up, whatever address it names, and others are not', async () => {
    const guess = (from: string, n: number) =>
      new Promise<number | undefined>((resolve, reject) => {
        const headers = { 'x-api-key': `ph_guess-${n}`, 'x-forwarded-for': `203.0.113.${n}` };
        const asked = get(`${url}/api/sources`, { headers, localAddress: from }, (response) => {
          response.resume();
          resolve(response.statusCode);
        });
        asked.once('error', reject);
      });
    const statuses: (number | undefined)[] = [];
    for (let n = 0; n < 80; n++) statuses.push(await guess('127.0.0.9', n));
    expect(new Set(statuses)).toEqual(new Set([401, 429]));
    expect(await guess('127.0.0.10', 1)).toBe(401);
  });

  test.each(['api', 'ingest'])('the %s process is started again when it dies', async (role) => {
    const before = program.output().length;
    const [killed = 0] = childPids(program.pid, ` ${role}`);
    process.kill(killed, 'SIGKILL');
    await eventually('another one', 30_000, () => (childPids(program.pid, ` ${role}`)[0] ?? killed) !== killed);
    await eventually('both to be served', 30_000, async () => {
      const statuses = [
        await statusOf('beside').catch(() => 0),
        (await rest.send('GET', '/api/sources').catch(() => ({ status: 0 }))).status,
      ];
      return statuses.every((status) => status === 200);
    });
    await eventually('it to be told', 30_000, () => program.output().slice(before).includes('a component stopped; restarting'));
  });

  test('shows which of its processes hangs, and that it works again', async () => {
    const readiness = async () => JSON.parse(await text('/readyz'));
    const [pid = 0] = childPids(program.pid, ' delivery');
    process.kill(pid, 'SIGSTOP');
    try {
      await eventually(
        'a hanging worker to be shown',
        30_000,
        async () => (await readiness()).checks.delivery.detail === 'does not answer',
      );
    } finally {
      process.kill(pid, 'SIGCONT');
    }
    await eventually('the worker to be ready', 30_000, async () => (await readiness()).status === 'ready');
  });

  test('keeps everything over a restart, and prints the key no second time', async () => {
    await rest.send('POST', '/api/destinations', { name: 'Kept', url: 'https://kept.example.com/' });
    program.signal('SIGTERM');
    expect(await program.ended).toBe(0);
    await start();
    expect(program.output()).toMatch(/^posthorn ready \S+$/m);
    const { body } = await rest.send('GET', '/api/destinations');
    expect(body.data.map(({ name }: { name: string }) => name)).toEqual(['Kept']);
  });

  test('starts again after it was killed, with what it had', async () => {
    const { eventId } = accepted.parse(await (await post('beside')).json());
    // Redis writes its log to the disk every second.
    await new Promise((resolve) => setTimeout(resolve, 1500));
    const children = ['api', 'ingest', 'controller', 'delivery'].flatMap((role) => childPids(program.pid, ` ${role}`));
    program.signal('SIGKILL');
    await program.ended;
    await eventually('all but its Redis to end', 30_000, () => children.every((pid) => !isAlive(pid)));
    await start();
    expect((await rest.send('GET', `/api/events/${eventId}`)).status).toBe(200);
  });
});

/** A process without a waiting parent stays in the process table when it has ended. */
function isAlive(pid: number): boolean {
  try {
    return !/^State:\tZ/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}
