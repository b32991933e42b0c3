import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/ports.ts';
import { type Program, startProgram } from '../support/program.ts';

const requests = 150;
const kills = 3;
let directory: string;
let program: Program;
let url: string;
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'posthorn-kill-'));
  const port = await freePort();
  url = `http://127.0.0.1:${port}`;
  program = startProgram(['standalone'], { POSTHORN_PORT: String(port), POSTHORN_DATA_DIR: directory });
  await program.waitForOutput(/^posthorn ready/m, 60_000);
});
afterAll(async () => {
  await program.stop();
  rmSync(directory, { recursive: true, force: true });
});

/** The process of the role api. */
function apiPid(): number | null {
  const lines = execFileSync('ps', ['-o', 'pid=,args=', '--ppid', String(program.pid)], { encoding: 'utf8' }).split('\n');
  const line = lines.find((each) => / api$/.test(each.trim()));
  return line === undefined ? null : Number.parseInt(line, 10);
}

async function send(
  method: string,
  path: string,
  body?: object,
  key?: string,
  // biome-ignore lint/suspicious/noExplicitAny: any JSON
): Promise<{ status: number; body: any } | null> {
  try {
    const response = await fetch(url + path, {
      method,
      headers: {
        authorization: `Bearer ${readFileSync(join(directory, 'api-key'), 'utf8').trim()}`,
        ...(key !== undefined && { 'idempotency-key': key }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(30_000),
    });
    return { status: response.status, body: await response.json() };
  } catch {
    return null;
  }
}

test('requests repeated with their keys while the API is killed make one record each, with its credential', async () => {
  const begun = performance.now();
  const untilMade = async (number: number): Promise<string> => {
    const body = {
      name: `Number ${number}`,
      url: 'https://hooks.example.com/in',
      authType: 'bearer',
      authConfig: { token: `token-of-number-${number}` },
    };
    while (performance.now() - begun < 120_000) {
      const answer = await send('POST', '/api/destinations', body, `key-${number}`);
      if (answer?.status === 201) return answer.body.id ?? '';
      await sleep(200);
    }
    throw new Error(`request ${number} was not answered`);
  };
  const ids: string[] = [];
  let next = 0;
  const senders = Array.from({ length: 16 }, async () => {
    for (let number = next++; number < requests; number = next++) ids[number] = await untilMade(number);
  });
  let killed = 0;
  for (const at of [30, 60, 90]) {
    while (next < at) await sleep(5);
    const pid = await eventually('the API to be started again', 30_000, () => apiPid() ?? undefined);
    process.kill(pid, 'SIGKILL');
    killed++;
  }
  await Promise.all(senders);
  expect(killed).toBe(kills);
  // An API that was started again follows what there is.
  const records = await eventually(async () => {
    const listed = await Promise.all([1, 2].map((page) => send('GET', `/api/destinations?pageSize=100&page=${page}`)));
    const found: { id: string; name: string }[] = listed.flatMap((page) => page?.body.data);
    expect(found.map(({ name }) => name).sort()).toEqual(Array.from({ length: requests }, (_, number) => `Number ${number}`).sort());
    return found;
  });
  expect(new Set(records.map(({ id }) => id))).toEqual(new Set(ids));
  for (const id of ids) {
    const record = await send('GET', `/api/destinations/${id}`);
    expect(record?.body).toMatchObject({ authConfig: { token: expect.stringMatching(/^••••./) } });
  }
}, 180_000);
