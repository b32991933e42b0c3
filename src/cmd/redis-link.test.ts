import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { pino } from 'pino';
import { type CertificateAuthority, createCertificateAuthority } from '../../test/support/certificate-authority.ts';
import { eventually } from '../../test/support/eventually.ts';
import { freePort } from '../../test/support/ports.ts';
import { startRedis } from '../../test/support/redis.ts';
import { readConfig } from './config.ts';
import { Readiness } from './readiness.ts';
import { redisOf } from './redis-address.ts';
import { RedisLink } from './redis-link.ts';

const directory = mkdtempSync(join(tmpdir(), 'posthorn-redis-link-'));
const at = (name: string): string => join(directory, name);
let ca: CertificateAuthority;
let other: CertificateAuthority;
beforeAll(() => {
  ca = createCertificateAuthority();
  other = createCertificateAuthority();
  for (const [authority, name] of [
    [ca, 'server'],
    [ca, 'right'],
    [other, 'wrong'],
  ] as const) {
    const { key, cert } = authority.issue(['127.0.0.1']);
    writeFileSync(at(`${name}.key`), key);
    writeFileSync(at(`${name}.crt`), cert);
  }
});
afterAll(() => {
  ca.remove();
  other.remove();
  rmSync(directory, { recursive: true, force: true });
});

/** A link by these variables, with what it logs. */
function open(environment: Record<string, string>) {
  const lines: { msg: string; reason?: string }[] = [];
  const logger = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const readiness = new Readiness(['redis']);
  const config = readConfig('check', environment);
  const link = new RedisLink(redisOf(config, logger), { name: 'api', prefix: 'test:', logger, readiness });
  const reasons = () => lines.flatMap(({ msg, reason }) => (msg === 'Redis is unreachable; retrying' ? [reason ?? ''] : []));
  return { link, lines, readiness, reasons };
}

test('each new reason of an outage is logged once, and a password that comes into its file late is used', async () => {
  const redis = await startRedis(['--save', '', '--appendonly', 'no']);
  const file = at('url');
  const put = (login: string) => writeFileSync(file, `redis://${login}127.0.0.1:${redis.port}\n`);
  put('');
  const { link, lines, readiness, reasons } = open({ POSTHORN_REDIS_URL_FILE: file });
  const admin = new Redis(redis.port, '127.0.0.1', { retryStrategy: () => 20 }).on('error', () => {});
  const blocking = link.blocking('reader', 1000);
  void blocking.connect();
  try {
    await eventually(() => expect([link.main.status, blocking.status, readiness.ready]).toEqual(['ready', 'ready', true]));
    await redis.kill('SIGKILL');
    await eventually(() => expect(reasons().some((reason) => reason.includes('ECONNREFUSED'))).toBe(true));
    await redis.start();
    await eventually(() => expect(link.main.status).toBe('ready'));
    expect(lines.at(-1)?.msg).toBe('Redis is reachable again');
    // The administrator stays, and everybody else has to give the password.
    await admin.config('SET', 'requirepass', 'one');
    await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await eventually(() => expect(reasons().some((reason) => reason.includes('NOAUTH'))).toBe(true));
    put(':two@');
    await eventually(() => expect(reasons().some((reason) => reason.includes('WRONGPASS'))).toBe(true));
    expect(readiness.ready).toBe(false);
    expect(new Set(reasons().slice(1)).size).toBe(reasons().length - 1);
    for (const url of ['', 'redis://:one@another.example', 'no URL', `redis://:one@127.0.0.1:${redis.port}/7`]) {
      const before = lines.length;
      writeFileSync(file, url);
      await eventually(() => expect(lines.slice(before).map(({ msg }) => msg)).toContainEqual(expect.stringContaining('cannot be read')));
    }
    put(':one@');
    await eventually(() => expect([link.main.status, blocking.status, readiness.ready]).toEqual(['ready', 'ready', true]));
    expect(await blocking.ping()).toBe('PONG');
    expect(JSON.stringify(lines)).not.toMatch(/:(one|two)@/);
  } finally {
    admin.disconnect();
    link.close();
    await redis.stop();
  }
});

test.each(['authority', 'certificate'])('a new %s of Redis in its file is used at the next connect', async (what) => {
  const port = await freePort();
  const files = ['--tls-cert-file', at('server.crt'), '--tls-key-file', at('server.key'), '--tls-ca-cert-file', ca.file];
  const redis = await startRedis(['--save', '', '--tls-port', String(port), '--tls-auth-clients', 'yes', ...files]);
  const copy = (from: string, to: string) => writeFileSync(to, readFileSync(from));
  const own = { ca: at('own-ca.crt'), cert: at('own.crt'), key: at('own.key') };
  copy(what === 'authority' ? other.file : ca.file, own.ca);
  const first = what === 'certificate' ? 'wrong' : 'right';
  copy(at(`${first}.crt`), own.cert);
  copy(at(`${first}.key`), own.key);
  const { link, reasons } = open({
    POSTHORN_REDIS_URL: `rediss://127.0.0.1:${port}`,
    POSTHORN_REDIS_CA_FILE: own.ca,
    POSTHORN_REDIS_CERT_FILE: own.cert,
    POSTHORN_REDIS_KEY_FILE: own.key,
  });
  try {
    await eventually(() => expect(reasons().length).toBeGreaterThan(0));
    copy(ca.file, own.ca);
    copy(at('right.crt'), own.cert);
    copy(at('right.key'), own.key);
    await eventually(() => expect(link.main.status).toBe('ready'));
  } finally {
    link.close();
    await redis.stop();
  }
});
