import { createHmac } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { eventually } from '../../test/support/eventually.ts';
import { IngestUnderTest, keyPrefix, signingSecret } from '../../test/support/ingest.ts';
import { recordSealingContext } from '../core/sealing-contexts.ts';
import { type SignatureFailureEntry, SignatureFailures, signatureFailureKeys } from '../data/intake/signature-failures.ts';

let ingest: IngestUnderTest;
let failures: SignatureFailures;
beforeAll(async () => {
  ingest = await IngestUnderTest.start();
  failures = new SignatureFailures({ redis: ingest.redis.client, prefix: keyPrefix });
});
afterAll(() => ingest.stop());
beforeEach(() => ingest.reset());

const path = '/ingest/acme/github';
const keys = signatureFailureKeys(keyPrefix, 'org_a');
const signed = (body: string, secret = signingSecret): Record<string, string> => ({
  'x-hub-signature-256': `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`,
});

/** The failures of the source, once they are written. */
async function written(source = 'src_a'): Promise<SignatureFailureEntry[]> {
  await ingest.failures?.close();
  return (await failures.of('org_a', source, 0)).entries;
}

describe('a request whose signature fails', () => {
  test('a request whose signature fails gets the answer that reports nothing, and the source keeps the reason, the address and the user agent', async () => {
    await ingest.publishSignedSource({ provider: 'github' });
    const beforeMs = Date.now();
    for (const headers of [{}, { 'x-hub-signature-256': 'sha1=0' }, signed('{}', 'another secret')]) {
      const answer = await ingest.send(path, { headers: { ...headers, 'user-agent': 'GitHub-Hookshot/044aadd' } });
      expect([answer.status, answer.body]).toEqual([
        401,
        { error: 'Unauthorized', message: 'The signature is missing or wrong', code: 'INVALID_SIGNATURE' },
      ]);
    }
    const entries = await written();
    const common = { isRefused: true, address: '127.0.0.1', userAgent: 'GitHub-Hookshot/044aadd', requests: 1 };
    expect(entries).toMatchObject([
      { reason: 'no_secret_matches', ...common },
      { reason: 'header_malformed', header: 'x-hub-signature-256', ...common },
      { reason: 'header_missing', header: 'x-hub-signature-256', ...common },
    ]);
    const counted = (await ingest.metrics.getSingleMetric('posthorn_ingest_signature_failures_total')?.get())?.values ?? [];
    expect(counted.filter(({ value }) => value > 0).map(({ labels, value }) => [labels['reason'], value])).toEqual([
      ['header_missing', 1],
      ['header_malformed', 1],
      ['no_secret_matches', 1],
    ]);
    for (const { firstAtMs, lastAtMs } of entries) {
      expect(firstAtMs).toBeGreaterThanOrEqual(beforeMs);
      expect(lastAtMs).toBeLessThanOrEqual(Date.now());
    }
  });

  test('a request whose signature fails at a source that takes such is kept as one that was not refused', async () => {
    await ingest.publishSignedSource({ provider: 'github', rejectInvalidSignatures: false });
    expect((await ingest.send(path)).status).toBe(200);
    expect(await written()).toMatchObject([{ reason: 'header_missing', isRefused: false, requests: 1 }]);
  });

  test('a request whose signature is valid leaves nothing, and so does one to a source that checks none or does not exist', async () => {
    await ingest.publishSignedSource({ provider: 'github' });
    expect((await ingest.send(path, { headers: signed('{}') })).status).toBe(200);
    expect((await ingest.send('/ingest/acme/reset')).status).toBe(200);
    expect((await ingest.send('/ingest/acme/nothing')).status).toBe(404);
    await ingest.failures?.close();
    expect(await ingest.redis.client.keys(`${keyPrefix}{sigfail:*`)).toEqual([]);
  });

  test('a source that refuses all because it has no secret reports it', async () => {
    await ingest.publishSource({ provider: 'github', rejectInvalidSignatures: true });
    expect((await ingest.send(path)).status).toBe(401);
    expect(await written()).toMatchObject([{ reason: 'no_secret' }]);
  });

  test('a body that the source signs for anybody is reported as the reason', async () => {
    await ingest.publishSignedSource({ provider: 'github', handshake: { type: 'crc_token' } });
    expect((await ingest.send(path, { body: 'token', headers: signed('token') })).status).toBe(401);
    expect(await written()).toMatchObject([{ reason: 'body_is_handshake_token' }]);
  });

  test('a secret that does not open is the reason, alone or where no other secret matches', async () => {
    const sealed = (secret: string, id = 'src_a'): string =>
      ingest.keyring.seal(secret, recordSealingContext('org_a', 'source', id, 'signingSecrets'));
    const unreadable = sealed('another', 'src_of_another');
    await ingest.publishSignedSource({ provider: 'github', signingSecrets: [unreadable] });
    expect((await ingest.send(path, { headers: signed('{}') })).status).toBe(500);
    await ingest.publishSignedSource({ provider: 'github', signingSecrets: [unreadable, sealed(signingSecret)] });
    expect((await ingest.send(path, { headers: signed('{}') })).status).toBe(200);
    expect((await ingest.send(path, { headers: signed('{}', 'another') })).status).toBe(401);
    expect((await ingest.send(path)).status).toBe(401);
    expect(await written()).toMatchObject([
      { reason: 'header_missing', requests: 1 },
      { reason: 'secret_unreadable', requests: 2 },
    ]);
  });
});

test('what is kept of a failure has no byte of the payload, the signature, the secret or a credential in the user agent', async () => {
  await ingest.publishSignedSource({ provider: 'github' });
  const token = 'canary-credential-0123456789abcdef';
  const { 'x-hub-signature-256': signature = '' } = signed('canary-payload', 'canary-secret');
  const headers = {
    'x-hub-signature-256': signature,
    authorization: `Bearer ${token}`,
    'user-agent': `Shop/1 (${token}) ${'x '.repeat(400)}`,
  };
  await ingest.send(`${path}?token=canary-query`, { body: 'canary-payload', headers });
  const [entry] = await written();
  expect(entry?.userAgent).toMatch(/^Shop\/1 \(…\) x x/);
  expect(entry?.userAgent?.length).toBeLessThanOrEqual(120);
  const { client } = ingest.redis;
  const kept = JSON.stringify([
    await client.lrange(keys.entriesOf('src_a'), 0, -1),
    await client.hgetall(keys.totals),
    await client.zrange(keys.sources, '0', '-1', 'WITHSCORES'),
  ]);
  expect(kept).toContain('no_secret_matches');
  for (const secret of ['canary', signature.slice(7), signingSecret]) expect(kept).not.toContain(secret);
});

test('failures of one source expire a day after the last one', async () => {
  await ingest.publishSignedSource({ provider: 'github' });
  await ingest.send(path);
  await written();
  for (const key of [keys.entriesOf('src_a'), keys.sources, keys.totals]) {
    const leftMs = await ingest.redis.client.pttl(key);
    expect([leftMs > 86_300_000, leftMs <= 86_400_000]).toEqual([true, true]);
  }
});

test('a flood of requests without a signature costs Redis one call a second, counts them all, and no answer waits for it', async () => {
  await ingest.publishSignedSource({ provider: 'github' });
  const { client } = ingest.redis;
  const scripts = async (): Promise<number> =>
    [...(await client.info('commandstats')).matchAll(/^cmdstat_eval(?:sha)?:calls=(\d+)/gm)].reduce(
      (sum, [, calls]) => sum + Number(calls),
      0,
    );
  await ingest.send(path);
  const before = await scripts();
  const startedMs = performance.now();
  const statuses = new Set<number>();
  for (let round = 0; round < 20; round++) {
    const agents = Array.from({ length: 50 }, (_, i) => ({ 'user-agent': `Flood/${round}.${i}` }));
    for (const { status } of await Promise.all(agents.map((headers) => ingest.send(path, { headers })))) statuses.add(status);
  }
  const seconds = (performance.now() - startedMs) / 1000;
  expect([...statuses]).toEqual([401]);
  await written();
  expect((await scripts()) - before).toBeLessThanOrEqual(Math.ceil(seconds) + 3);
  const { requests, entries } = await failures.of('org_a', 'src_a', 0);
  expect([requests, entries.length, entries[0]?.requests]).toEqual([1001, 1, 1001]);
});

test('failures are written within seconds while the process continues, and forgotten with their organization', async () => {
  await ingest.publishSignedSource({ provider: 'github' });
  for (const total of [1, 2]) {
    await ingest.send(path);
    await eventually(async () => expect((await failures.of('org_a', 'src_a', 0)).requests).toBe(total));
  }
  await failures.purge('org_a');
  expect(await ingest.redis.client.keys(`${keyPrefix}{sigfail:*`)).toEqual([]);
});
