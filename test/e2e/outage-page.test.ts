import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { kubernetesAssets } from '../support/control-plane.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/ports.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { type ControlPlaneWorld, startControlPlaneWorld } from './control-plane-world.ts';
import { Shop } from './manifests.ts';
import { ingest, RestClient } from './rest.ts';
import type { Manifest } from './world.ts';

/** With this in the environment the page gets what its commands print. */
const isRecording = process.env['POSTHORN_RECORD_PAGE'] !== undefined;
const file = new URL('../../docs/outage.md', import.meta.url);
const page = readFileSync(file, 'utf8');
/** After this heading the receiver answers again. */
const repaired = '## The receiver is back';
const apiVersion = 'posthorn.dev/v1alpha1';
const shop = new Shop('acme');
const home = mkdtempSync(join(tmpdir(), 'posthorn-outage-'));
const beganMs = Date.now();

let world: ControlPlaneWorld;
let receiver: Receiver;
let rest: RestClient;
let url: string;
let isDown = true;
let outageBeganMs: number;

beforeAll(async () => {
  world = await startControlPlaneWorld();
  receiver = await startReceiver((response) => {
    response.statusCode = isDown ? 503 : 200;
    response.end(isDown ? 'no connection to the database' : 'ok');
  });
  const [apiPort, ingestPort] = [await freePort(), await freePort()];
  url = `http://127.0.0.1:${apiPort}`;
  rest = new RestClient(url, shop.apiKey);
  world.start('controller');
  world.start('api', { port: apiPort });
  world.start('ingest', { port: ingestPort });
  world.start('delivery');
  const organization = shop.organization(['127.0.0.0/8']);
  await world.apply([organization]);
  await world.waitUntilReady(organization);
  const objects = [shop.apiKeyManifest, ...orderManifests(receiver.url)];
  await world.apply(objects);
  for (const each of objects) await world.waitUntilReady(each);
  await eventually('the api to be ready', 60_000, async () => (await fetch(`${url}/readyz`).catch(() => null))?.ok);
  const send = async (order: number): Promise<string> => {
    const body = Buffer.from(JSON.stringify({ order, total: 100 + order }));
    const answer = await ingest(`http://127.0.0.1:${ingestPort}`, 'acme/orders', {
      headers: { 'content-type': 'application/json' },
      body,
    });
    expect([answer.status, answer.body]).toEqual([200, expect.objectContaining({ success: true })]);
    return answer.body.eventId ?? '';
  };
  const becomes = async (eventId: string, status: string): Promise<void> => {
    await eventually(`the delivery of ${eventId} to be ${status}`, 60_000, async () => {
      const { body } = await rest.send('GET', `/api/deliveries?eventId=${eventId}&routeId=orders`);
      return body.data[0]?.status === status;
    });
  };
  await eventually('ingest to be ready', 60_000, async () => (await fetch(`http://127.0.0.1:${ingestPort}/readyz`).catch(() => null))?.ok);
  outageBeganMs = Date.now();
  // One after the other: two attempts of each of the first two, and the fifth failure opens the circuit.
  for (const order of [16, 17]) await becomes(await send(order), 'dlq');
  for (const order of [18, 19, 20]) await becomes(await send(order), 'circuit_open');
  await eventually('the status of the route to tell the open circuit', 60_000, async () => {
    const route = await world.controlPlane.request('GET', `/apis/${apiVersion}/namespaces/acme/routes/orders`);
    return JSON.stringify(route).includes('"state":"open"');
  });
}, 240_000);
afterAll(async () => {
  await receiver?.close();
  rmSync(home, { recursive: true, force: true });
  await world?.stop();
});

function orderManifests(receiverUrl: string): Manifest[] {
  const named = (name: string) => ({ name, namespace: 'acme' });
  const route = (name: string, more: object): Manifest => ({
    apiVersion,
    kind: 'Route',
    metadata: named(name),
    spec: { sourceRef: { name: 'orders' }, ...more },
  });
  return [
    { apiVersion, kind: 'Source', metadata: named('orders'), spec: { provider: 'generic' } },
    {
      apiVersion,
      kind: 'Destination',
      metadata: named('shop'),
      spec: { type: 'http', http: { url: receiverUrl }, retryPolicy: { maxRetries: 1, initialDelayMs: 100 } },
    },
    { apiVersion, kind: 'Destination', metadata: named('billing'), spec: { type: 'http', http: { url: receiverUrl } } },
    route('orders', { destinationRefs: [{ name: 'shop' }], circuit: { failureThreshold: 5, cooldownSeconds: 3600 } }),
    route('large-orders', {
      destinationRefs: [{ name: 'billing' }],
      filter: { conditions: [{ field: 'payload.total', operator: 'gt', value: 1000 }] },
    }),
  ];
}

/** A shell that keeps its variables from one command to the next. */
function startShell(environment: Record<string, string>) {
  const child = spawn('bash', ['--norc'], { env: environment, stdio: ['pipe', 'pipe', 'inherit'] });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    output += chunk;
  });
  child.stdin.write('exec 2>&1\n');
  let count = 0;
  return {
    run: async (command: string): Promise<string> => {
      const mark = `--- end of ${++count} ---`;
      output = '';
      child.stdin.write(`${command}\necho "${mark}"\n`);
      await eventually(`the end of ${command}`, 90_000, async () => output.includes(`${mark}\n`));
      return output.slice(0, output.indexOf(mark));
    },
    stop: () => void child.stdin.end(),
  };
}

interface Step {
  /** As it is on the page, with the marks of the shell. */
  shown: string;
  command: string;
}

function stepsOf(block: string): Step[] {
  return block
    .split(/^(?=\$ )/m)
    .filter((text) => text.startsWith('$ '))
    .map((text) => {
      const lines = text.split('\n');
      const end = lines.findIndex((line, i) => i > 0 && !line.startsWith('> '));
      const shown = lines.slice(0, end < 0 ? undefined : end);
      return { shown: shown.join('\n'), command: shown.map((line) => line.slice(2)).join('\n') };
    });
}

/** The page with what its commands print. */
async function ranPage(): Promise<string> {
  const window = `FROM=${new Date(beganMs).toISOString()} TO=${new Date(Date.now() + 3_600_000).toISOString()}`;
  const shell = startShell({
    PATH: `${kubernetesAssets()}:${process.env['PATH']}`,
    // The discovery cache of kubectl.
    HOME: home,
    KUBECONFIG: world.controlPlane.kubeconfigPath,
    URL: url,
    KEY: shop.apiKey,
  });
  const parts = page.split(/^```console\n([\s\S]*?)^```$/m);
  try {
    for (const [i, part] of parts.entries()) {
      if (part.includes(repaired)) isDown = false;
      if (i % 2 === 0) continue;
      let block = '';
      for (const { shown, command } of stepsOf(part)) {
        const printed = await shell.run(command.startsWith('FROM=') ? window : command);
        block += `${shown}\n${shortened(printed)}`;
      }
      parts[i] = `\`\`\`console\n${block}\`\`\``;
    }
  } finally {
    shell.stop();
  }
  return parts.join('');
}

/** Ids without what is random in them. */
function shortened(text: string): string {
  return text.replaceAll(/\b(evt|msg|src|dst|rte)_[a-z0-9]{20,}/g, '$1_…');
}

/** As if the outage had begun when it does on the page. */
function atNight(text: string): string {
  const [, began = ''] = /^\$ FROM=(\S+)/m.exec(page) ?? [];
  const laterMs = outageBeganMs - Date.parse(began);
  return text.replaceAll(/\b(?:since|at) (\d{4}-\d\d-\d\dT[\d:.]+Z)/g, (words, time: string) =>
    words.replace(time, new Date(Date.parse(time) - laterMs).toISOString().replace('.000', '')),
  );
}

/** What differs between two runs: times, durations and the columns of ages. */
function comparable(text: string): string {
  return text
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<time>')
    .replaceAll(/\b\d+ ms\b/g, '<duration>')
    .replaceAll(/^(NAME .*)$/gm, (line) => line.replaceAll(/ +/g, ' '))
    .replaceAll(/^(.*\S) +\d+[smh](?:\d+s)?$/gm, (_, line: string) => `${line.replaceAll(/ +/g, ' ')} <age>`);
}

test('the commands of the page about an outage print what the page shows', async () => {
  const ran = await ranPage();
  if (isRecording) writeFileSync(file, atNight(ran));
  else expect(comparable(ran)).toBe(comparable(page));
}, 240_000);
