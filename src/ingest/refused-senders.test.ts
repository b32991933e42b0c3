import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { IngestUnderTest } from '../../test/support/ingest.ts';

let ingest: IngestUnderTest;
beforeAll(async () => {
  ingest = await IngestUnderTest.start();
});
afterAll(() => ingest.stop());
beforeEach(() => ingest.reset());

const path = '/ingest/acme/github';
const refusals: Record<string, { status: number; code: string; path?: string; prepare(): Promise<unknown> }> = {
  'to a source that does not exist': { status: 404, code: 'NOT_FOUND', path: '/ingest/acme/nothing', prepare: async () => {} },
  'over the rate of its source': {
    status: 429,
    code: 'RATE_LIMITED',
    prepare: async () => {
      await ingest.publishSource({ rateLimitPerMinute: 1 });
      await ingest.send(path);
    },
  },
  'with a body over the limit': {
    status: 413,
    code: 'PAYLOAD_TOO_LARGE',
    prepare: () => ingest.publishSource({ payloadLimitBytes: 1000 }),
  },
  'without a signature': {
    status: 401,
    code: 'INVALID_SIGNATURE',
    prepare: () => ingest.publishSignedSource({ largePayloadLimitBytes: 4_000_000 }),
  },
  'with a method that is not allowed': {
    status: 405,
    code: 'METHOD_NOT_ALLOWED',
    prepare: () => ingest.publishSource({ allowedMethods: ['PUT'] }),
  },
};
const heads = {
  'Connection: close': (target: string, length: string) => `POST ${target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${length}\r\n\r\n`,
  'HTTP/1.0': (target: string, length: string) => `POST ${target} HTTP/1.0\r\n${length}\r\n\r\n`,
};

describe.each(Object.entries(refusals))(
  'a sender that reads nothing before all is written is told why its event %s is refused',
  (_, refusal) => {
    test.each(['Connection: close', 'HTTP/1.0'] as const)('with %s', async (how) => {
      for (const bytes of [100_000, 300_000, 3_000_000]) {
        await ingest.reset({}, undefined, { maxPayloadBytes: 4_000_000 });
        await refusal.prepare();
        const head = heads[how](refusal.path ?? path, `Content-Length: ${bytes}`);
        const answer = await ingest.sendPaced({ head, bytes });
        expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${refusal.status} `));
        expect(answer).toContain(`"code":"${refusal.code}"`);
        expect(answer.includes('Retry-After: ')).toBe(refusal.status === 429);
      }
    });
  },
);

test('a sender that never ends its refused body is cut off when its time is over', async () => {
  await ingest.reset({ drainDeadlineMs: 300 });
  const startedMs = performance.now();
  const answer = await ingest.sendRaw([heads['Connection: close']('/ingest/acme/nothing', 'Content-Length: 1000'), 'x']);
  expect(answer).toMatch(/^HTTP\/1.1 404 /);
  expect(performance.now() - startedMs).toBeLessThan(20_000);
});
