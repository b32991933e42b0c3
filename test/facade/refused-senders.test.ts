import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { sendPaced } from '../support/paced-sender.ts';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';

let world: FacadeWorld;
let port: number;
beforeAll(async () => {
  world = await startFacadeWorld();
  port = Number(new URL(world.baseUrl).port);
});
afterAll(() => world.stop());

const refusals: Record<string, { status: number; code: string; path?: string; headers?(): string }> = {
  'without credentials': { status: 401, code: 'UNAUTHORIZED', headers: () => '' },
  'with a wrong key': { status: 401, code: 'UNAUTHORIZED', headers: () => 'X-Api-Key: wrong\r\n' },
  'to a path where nothing is': { status: 404, code: 'NOT_FOUND', path: '/api/nothing' },
  'outside of the API': { status: 404, code: 'NOT_FOUND', path: '/nothing' },
  'with a method that is not possible': { status: 405, code: 'METHOD_NOT_ALLOWED', path: '/api/events' },
  'with a body of another type': { status: 415, code: 'UNSUPPORTED_MEDIA_TYPE' },
};

const cases = Object.keys(refusals).flatMap((what) => ['1.1', '1.0'].map((version) => [what, version] as const));

test.each(cases)(
  'a client that reads nothing before all is written is told why its request %s is refused, in HTTP/%s',
  async (what, version) => {
    const {
      status,
      code,
      path = '/api/sources',
      headers = () => `X-Api-Key: ${world.admin}\r\n`,
    } = refusals[what] ?? { status: 0, code: '' };
    for (const bytes of [100_000, 300_000, 3_000_000]) {
      const head = `POST ${path} HTTP/${version}\r\nHost: a\r\nConnection: close\r\n${headers()}Content-Length: ${bytes}\r\n\r\n`;
      const answer = await sendPaced(port, { head, bytes });
      expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
      expect(answer).toContain(`"code":"${code}"`);
    }
  },
);

test.each(['1.1', '1.0'])(
  'a client that reads nothing before all is written is told that its body is too large, in HTTP/%s',
  async (version) => {
    const headers = `Host: a\r\nConnection: close\r\nX-Api-Key: ${world.admin}\r\nContent-Type: application/json\r\nContent-Length: 3000000`;
    const answer = await sendPaced(port, { head: `POST /api/sources HTTP/${version}\r\n${headers}\r\n\r\n`, bytes: 3_000_000 });
    expect(answer).toMatch(/^HTTP\/1.1 413 /);
  },
);

test('a client that reads nothing before all is written is told when to come back', async () => {
  const guess = () => world.request('GET', '/api/sources', { key: `ph_${'a'.repeat(52)}` });
  for (const bytes of [100_000, 300_000, 3_000_000]) {
    const head = `POST /api/sources HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX-Api-Key: wrong\r\nContent-Length: ${bytes}\r\n\r\n`;
    await eventually(async () => {
      // One guess a second comes back.
      await Promise.all(Array.from({ length: 61 }, guess));
      expect(await sendPaced(port, { head, bytes })).toMatch(/^HTTP\/1.1 429 [\s\S]*\r\nRetry-After: \d+\r\n/);
    });
  }
});
