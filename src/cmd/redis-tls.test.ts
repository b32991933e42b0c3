import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type CertificateAuthority, createCertificateAuthority } from '../../test/support/certificate-authority.ts';
import { eventually } from '../../test/support/eventually.ts';
import { freePort } from '../../test/support/ports.ts';
import { startProgram } from '../../test/support/program.ts';
import { startRedis } from '../../test/support/redis.ts';

const directory = mkdtempSync(join(tmpdir(), 'posthorn-redis-tls-'));
const at = (name: string): string => join(directory, name);
let ca: CertificateAuthority;

beforeAll(() => {
  ca = createCertificateAuthority();
  for (const name of ['server', 'posthorn']) {
    const { key, cert } = ca.issue(['127.0.0.1']);
    writeFileSync(at(`${name}.key`), key);
    writeFileSync(at(`${name}.crt`), cert);
  }
});
afterAll(() => {
  ca.remove();
  rmSync(directory, { recursive: true, force: true });
});

/** A Redis that requires certificates; `check` returns how the program ends with these files of its own. */
async function startSecured(
  mode: 'single' | 'cluster',
  more: readonly string[],
): Promise<{ check(files: Record<string, string>): Promise<unknown>; stop(): Promise<void> }> {
  const port = await freePort();
  const files = ['--tls-cert-file', at('server.crt'), '--tls-key-file', at('server.key'), '--tls-ca-cert-file', ca.file];
  // Else it is 10,000 above the other port, where the system takes ports for outgoing connections.
  const bus = mode === 'cluster' ? ['--cluster-port', String(await freePort())] : [];
  const redis = await startRedis(['--save', '', '--tls-port', String(port), '--tls-auth-clients', 'yes', ...files, ...bus, ...more]);
  const environment = { POSTHORN_REDIS_MODE: mode, POSTHORN_REDIS_URL: `rediss://127.0.0.1:${port}` };
  if (mode === 'cluster') {
    await redis.client.call('CLUSTER', 'ADDSLOTSRANGE', 0, 16383);
    await eventually('the cluster', 30_000, async () => String(await redis.client.cluster('INFO')).includes('cluster_state:ok'));
  }
  return { check: (own) => startProgram(['check'], { ...environment, ...own }).ended, stop: () => redis.stop() };
}

const authority = (): Record<string, string> => ({ POSTHORN_REDIS_CA_FILE: ca.file });
const own = { POSTHORN_REDIS_CERT_FILE: at('posthorn.crt'), POSTHORN_REDIS_KEY_FILE: at('posthorn.key') };
const cluster = ['--cluster-enabled', 'yes', '--tls-cluster', 'yes'];

test.each([
  { mode: 'single' as const, more: [] },
  { mode: 'cluster' as const, more: [...cluster, '--cluster-announce-ip', '127.0.0.1'] },
])('a Redis ($mode) that requests certificates is reached with one, and not without', async ({ mode, more }) => {
  const { check, stop } = await startSecured(mode, more);
  try {
    expect(await check({ ...authority(), ...own })).toBe(0);
    expect(await check(authority())).toBe(2);
    expect(await check(own)).toBe(2);
  } finally {
    await stop();
  }
});

test('the wait for a Cluster that does not report its nodes ends after 10 s', async () => {
  const { check, stop } = await startSecured('cluster', cluster);
  try {
    expect(await check({ ...authority(), ...own })).toBe(2);
  } finally {
    await stop();
  }
});
