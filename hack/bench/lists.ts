// Lists and imports of the API: 10,000 destinations in standalone, and an import of 1,000 on a real API server of its own.
//   node hack/bench/lists.ts [destinations] [pages]
// Prints one table. Everything shares the cores.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { newApiKey } from '../../src/core/api-key-hash.ts';
import { eventually } from '../../test/support/eventually.ts';
import { freePort } from '../../test/support/ports.ts';
import { startProgram } from '../../test/support/program.ts';
import { buildProgram, builtProgram } from '../lib/built-program.ts';
import { bareRedisPipeline, redisCeilingRow } from './lib/ceilings.ts';
import { startControlPlanePrograms } from './lib/control-plane-programs.ts';
import { ms, percentile, report } from './lib/report.ts';

const [destinations = 10_000, pages = 500] = process.argv.slice(2).map(Number);
const ofOneImport = 1000;
const pageSize = 100;

interface Api {
  send(method: string, path: string, body?: unknown): Promise<Answer>;
}
interface Answer {
  status: number;
  // biome-ignore lint/suspicious/noExplicitAny: any JSON
  body: any;
  elapsedMs: number;
}

async function main(): Promise<void> {
  // What is measured is what the image holds.
  buildProgram();
  const alone = await inStandalone();
  const { importMs, ceiling } = await inKubernetes();
  report('lists', 'lists and imports of destinations', [
    [`standalone: import of ${ofOneImport}, with credentials`, seconds(alone.imports[0] ?? 0)],
    [`standalone: the same, with ${destinations - ofOneImport} there`, seconds(alone.imports.at(-1) ?? 0)],
    [`standalone: page of ${pageSize} of ${destinations}, p50`, ms(percentile(alone.pages, 0.5))],
    [`standalone: page of ${pageSize} of ${destinations}, p99`, ms(percentile(alone.pages, 0.99))],
    ['standalone: the same with search, p99', ms(percentile(alone.searches, 0.99))],
    [`standalone: export of ${destinations}`, seconds(alone.exportMs)],
    [`API server: import of ${ofOneImport}, with credentials`, seconds(importMs)],
    redisCeilingRow(ceiling),
  ]);
}

async function inStandalone(): Promise<{ imports: number[]; pages: number[]; searches: number[]; exportMs: number }> {
  const directory = mkdtempSync(join(tmpdir(), 'posthorn-bench-'));
  const port = await freePort();
  const key = newApiKey().key;
  const environment = { POSTHORN_PORT: String(port), POSTHORN_DATA_DIR: directory, POSTHORN_API_KEY: key, POSTHORN_LOG_LEVEL: 'warn' };
  const program = startProgram(['standalone'], environment, builtProgram);
  try {
    await program.waitForOutput(/^posthorn ready/m, 60_000);
    const api = clientOf(port, key);
    const imports: number[] = [];
    for (let from = 0; from < destinations; from += ofOneImport) imports.push(await importOne(api, from));
    const total = async (): Promise<number> => (await api.send('GET', '/api/destinations?pageSize=1')).body.pagination.total;
    await eventually('all destinations to be listed', 60_000, async () => (await total()) === destinations);
    const page = (): number => 1 + Math.floor(Math.random() * (destinations / pageSize));
    const times = async (path: () => string): Promise<number[]> => {
      for (let i = 0; i < 20; i++) await api.send('GET', path());
      const taken: number[] = [];
      for (let i = 0; i < pages; i++) taken.push((await api.send('GET', path())).elapsedMs);
      return taken;
    };
    return {
      imports,
      pages: await times(() => `/api/destinations?pageSize=${pageSize}&page=${page()}`),
      searches: await times(() => `/api/destinations?pageSize=${pageSize}&search=number%20${page()}`),
      exportMs: (await api.send('GET', '/api/destinations/export')).elapsedMs,
    };
  } finally {
    await program.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}

async function inKubernetes(): Promise<{ importMs: number; ceiling: number }> {
  const { apiPort, apiKey, stop } = await startControlPlanePrograms(['controller', 'api']);
  try {
    const api = clientOf(apiPort, apiKey);
    await eventually('the API to know the key', 60_000, async () => {
      const answer = await api.send('GET', '/api/destinations').catch(() => null);
      return answer?.status === 200;
    });
    return { importMs: await importOne(api, 0), ceiling: await bareRedisPipeline() };
  } finally {
    await stop();
  }
}

function clientOf(port: number, key: string): Api {
  return {
    send: async (method, path, body) => {
      const startedAt = performance.now();
      const response = await fetch(`http://127.0.0.1:${port}${path}`, {
        method,
        headers: { authorization: `Bearer ${key}`, ...(body !== undefined && { 'content-type': 'application/json' }) },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      const answer = await response.json();
      return { status: response.status, body: answer, elapsedMs: performance.now() - startedAt };
    },
  };
}

async function importOne(api: Api, from: number): Promise<number> {
  const records = Array.from({ length: ofOneImport }, (_, i) => ({
    name: `Destination number ${from + i}`,
    slug: `destination-${from + i}`,
    url: `https://receiver-${from + i}.example.com/hooks/orders`,
    authType: 'bearer',
    authConfig: { token: `a-token-of-ordinary-length-${from + i}` },
  }));
  const { body, elapsedMs } = await api.send('POST', '/api/destinations/import', { destinations: records, conflictStrategy: 'skip' });
  if (body.summary?.imported !== ofOneImport) throw new Error(`not all were imported: ${JSON.stringify(body.summary ?? body)}`);
  return elapsedMs;
}

const seconds = (value: number): string => `${(value / 1000).toFixed(2)} s`;

await main();
