import { describe, expect, test } from '@jest/globals';
import { type Config, ConfigError, readConfig, unknownVariables } from './config.ts';

const key = Buffer.alloc(32, 7).toString('base64');
const needed = { POSTHORN_REDIS_URL: 'redis://localhost', POSTHORN_ENCRYPTION_KEYS: `k2:${key},k1:${key}` };

function mistakesOf(read: () => Config): readonly string[] {
  try {
    read();
  } catch (error) {
    if (error instanceof ConfigError) return error.mistakes;
    throw error;
  }
  return [];
}

describe('the configuration', () => {
  test('standalone needs nothing', () => {
    expect(readConfig('standalone', {})).toMatchObject({
      port: 8080,
      dataDirectory: '.posthorn',
      redis: undefined,
      resourceStore: 'redis',
    });
  });

  test('the configuration keeps the order of the encryption keys', () => {
    expect(readConfig('api', needed).encryptionKeys.map(({ id }) => id)).toEqual(['k2', 'k1']);
  });

  test('a batch of a warehouse waits for 60 seconds', () => {
    expect(readConfig('delivery', needed).warehouse.batchAgeMs).toBe(60_000);
  });

  test('the controllers bind the roles of config/rbac unless another installation is named', () => {
    expect(readConfig('controller', needed).installationName).toBe('posthorn');
    expect(readConfig('controller', { ...needed, POSTHORN_INSTALLATION_NAME: 'relay' }).installationName).toBe('relay');
    expect(mistakesOf(() => readConfig('controller', { ...needed, POSTHORN_INSTALLATION_NAME: 'Relay' }))).toHaveLength(1);
  });

  test('a process is of the installation default unless another is named, which only resources in Kubernetes can have', () => {
    expect(readConfig('controller', needed).installation).toBe('default');
    expect(readConfig('controller', { ...needed, POSTHORN_INSTALLATION: 'two' }).installation).toBe('two');
    expect(readConfig('uninstall', { POSTHORN_INSTALLATION: 'two' }).installation).toBe('two');
    for (const wrong of ['Two', 'two.three', '-', 'x'.repeat(64)])
      expect(mistakesOf(() => readConfig('controller', { ...needed, POSTHORN_INSTALLATION: wrong }))).toHaveLength(1);
    const inRedis = { ...needed, POSTHORN_RESOURCE_STORE: 'redis' };
    for (const [role, environment] of [['standalone', needed] as const, ['controller', inRedis] as const]) {
      expect(mistakesOf(() => readConfig(role, { ...environment, POSTHORN_INSTALLATION: 'two' }))).toEqual([
        'POSTHORN_INSTALLATION: must be default where resources live in Redis',
      ]);
      expect(readConfig(role, { ...environment, POSTHORN_INSTALLATION: 'default' }).installation).toBe('default');
    }
  });

  test('lists all mistakes at once', () => {
    const mistakes = mistakesOf(() =>
      readConfig('delivery', {
        POSTHORN_PORT: '99999',
        POSTHORN_EGRESS_ALLOWED_CIDRS: '10.0.0.0',
        POSTHORN_LOG_LEVEL: 'loud',
        POSTHORN_ENCRYPTION_KEYS: 'k1:short',
      }),
    );
    expect(mistakes.map((each) => each.split(':')[0]).sort()).toEqual([
      'POSTHORN_EGRESS_ALLOWED_CIDRS',
      'POSTHORN_ENCRYPTION_KEYS',
      'POSTHORN_LOG_LEVEL',
      'POSTHORN_PORT',
      'POSTHORN_REDIS_URL',
    ]);
  });

  test('the configuration never repeats a secret in a mistake', () => {
    const mistakes = mistakesOf(() =>
      readConfig('standalone', { POSTHORN_ENCRYPTION_KEYS: 'k1:my-secret-key', POSTHORN_API_KEY: 'my secret key' }),
    );
    expect(mistakes).toHaveLength(3);
    expect(mistakes.join()).not.toContain('secret key');
    expect(mistakes.join()).not.toContain('my-secret-key');
  });

  test('the list of hosts names hosts of all organizations and of single ones, and may name none', () => {
    const onlyHosts = (text?: string) => readConfig('delivery', { ...needed, POSTHORN_EGRESS_ONLY_HOSTS: text }).egress.onlyHosts;
    expect(onlyHosts('*.Example.com, acme/hooks.acme.example,*,[2001:DB8::1]')).toEqual([
      { organization: null, pattern: '*.example.com' },
      { organization: 'acme', pattern: 'hooks.acme.example' },
      { organization: null, pattern: '*' },
      { organization: null, pattern: '2001:db8::1' },
    ]);
    expect([onlyHosts('-'), onlyHosts(undefined)]).toEqual([[], undefined]);
    for (const wrong of ['https://a.example', 'a.example:443', 'a.*.example', 'acme/'])
      expect(() => onlyHosts(wrong)).toThrow('POSTHORN_EGRESS_ONLY_HOSTS');
  });

  test('an API key that is short enough to be guessed is refused, with the length that it needs', () => {
    const refused = mistakesOf(() => readConfig('standalone', { POSTHORN_API_KEY: 'k'.repeat(31) }));
    expect(refused).toEqual(['POSTHORN_API_KEY: must have at least 32 characters, so that it cannot be guessed']);
    expect(readConfig('standalone', { POSTHORN_API_KEY: 'k'.repeat(32) }).apiKey).toBe('k'.repeat(32));
  });

  test('an empty variable counts as absent', () => {
    expect(readConfig('standalone', { POSTHORN_PORT: '', POSTHORN_API_KEY: '' })).toMatchObject({ port: 8080, apiKey: undefined });
  });

  test('the address of a Service named posthorn, which Kubernetes puts into every pod, is not taken for a port', () => {
    expect(readConfig('api', { ...needed, POSTHORN_PORT: 'tcp://10.96.0.7:80' }).port).toBe(8080);
    expect(readConfig('ingest', { ...needed, POSTHORN_INGEST_PORT: 'tcp://10.96.0.8:80' }).ingestPort).toBeUndefined();
  });

  test('a misspelt variable is found, and what Kubernetes sets is not one', () => {
    const environment = {
      POSTHORN_PROT: '1',
      POSTHORN_SERVICE_HOST: '10.96.0.7',
      POSTHORN_PORT_80_TCP_ADDR: '10.96.0.7',
      POSTHORN_API_SERVICE_PORT: '80',
      POSTHORN_PORT: '1',
    };
    expect(unknownVariables(environment)).toEqual(['POSTHORN_PROT']);
  });

  test('the configuration reads how Redis is run', () => {
    const { redis } = readConfig('api', {
      ...needed,
      POSTHORN_REDIS_URL: 'rediss://user:pass@one:26379,two:26379/3',
      POSTHORN_REDIS_MODE: 'sentinel',
      POSTHORN_REDIS_SENTINEL_MASTER: 'queue',
      POSTHORN_REDIS_CA_FILE: 'ca.pem',
    });
    expect(redis).toMatchObject({ mode: 'sentinel', sentinel: { master: 'queue' }, caFile: 'ca.pem' });
  });

  test('the configuration reads the mail server, with the port that belongs to its TLS', () => {
    const smtp = (more: object) =>
      readConfig('delivery', { ...needed, POSTHORN_SMTP_HOST: 'mail.example.com', POSTHORN_SMTP_FROM: 'alerts@example.com', ...more }).smtp;
    expect(readConfig('delivery', needed).smtp).toBeUndefined();
    expect(smtp({})).toEqual({ host: 'mail.example.com', port: 587, tls: 'starttls', login: null, from: 'alerts@example.com' });
    expect(smtp({ POSTHORN_SMTP_TLS: 'implicit' })).toMatchObject({ port: 465 });
    expect(readConfig('delivery', needed).mailsPerDay).toBe(1000);
    expect(readConfig('delivery', { ...needed, POSTHORN_MAILS_PER_DAY: '50' }).mailsPerDay).toBe(50);
    expect(smtp({ POSTHORN_SMTP_TLS: 'off', POSTHORN_SMTP_PORT: '2525' })).toMatchObject({ port: 2525 });
    expect(smtp({ POSTHORN_SMTP_USER: 'me', POSTHORN_SMTP_PASSWORD_FILE: '/run/password' })).toMatchObject({
      login: { user: 'me', password: undefined, file: '/run/password' },
    });
  });

  test('the configuration lends the identity of the delivery pods to warehouses only when set', () => {
    const lends = (more: object) => readConfig('delivery', { ...needed, ...more }).warehouse.allowsPlatformIdentity;
    expect(lends({})).toBe(false);
    expect(lends({ POSTHORN_WAREHOUSE_PLATFORM_IDENTITY: 'false' })).toBe(false);
    expect(lends({ POSTHORN_WAREHOUSE_PLATFORM_IDENTITY: 'true' })).toBe(true);
  });

  test.each([
    ['an identity that is neither lent nor not', { POSTHORN_WAREHOUSE_PLATFORM_IDENTITY: 'yes' }, /PLATFORM_IDENTITY: Invalid option/],
    ...['0', '4294967295', 'me'].map((user): [string, object, RegExp] => [
      `workers that run as ${user}`,
      { POSTHORN_DELIVERY_RUN_AS_USER: user },
      /POSTHORN_DELIVERY_RUN_AS_USER: must be a user id other than 0, or platform/,
    ]),
    ['details of attempts of no known kind', { POSTHORN_ATTEMPT_DETAIL: 'errors' }, /POSTHORN_ATTEMPT_DETAIL: Invalid option/],
    ['several hosts without a mode', { POSTHORN_REDIS_URL: 'redis://one,two' }, /one host/],
    ['a socket of a cluster', { POSTHORN_REDIS_URL: '/run/redis.sock', POSTHORN_REDIS_MODE: 'cluster' }, /must name hosts/],
    ['a database of a cluster', { POSTHORN_REDIS_URL: 'redis://one/2', POSTHORN_REDIS_MODE: 'cluster' }, /database 0/],
    ['a certificate without its key', { POSTHORN_REDIS_CERT_FILE: 'cert.pem' }, /give both/],
    ['a proxy at port 0', { POSTHORN_EGRESS_PROXY_URL: 'http://proxy:0' }, /POSTHORN_EGRESS_PROXY_URL: must not have port 0/],
    ['a public address at port 0', { POSTHORN_PUBLIC_URL: 'https://hooks.example:0' }, /POSTHORN_PUBLIC_URL: must not have port 0/],
    ['a store at port 0', { POSTHORN_WAREHOUSE_S3_ENDPOINT: 'http://minio:0' }, /POSTHORN_WAREHOUSE_S3_ENDPOINT: must not have port 0/],
    ['a mail server at port 0', { POSTHORN_SMTP_PORT: '0' }, /POSTHORN_SMTP_PORT: must not be 0/],
    ['Redis at port 0', { POSTHORN_REDIS_URL: 'redis://one:0' }, /must be redis:/],
    ['a proxy whose password is not encoded', { POSTHORN_EGRESS_PROXY_URL: 'http://me:100%@proxy' }, /percent-encoded/],
    ['a mail server without a sender', { POSTHORN_SMTP_HOST: 'mail' }, /POSTHORN_SMTP_FROM: is required/],
    ['a sender with a line break', { POSTHORN_SMTP_FROM: 'A\nBcc: x <a@example.com>' }, /POSTHORN_SMTP_FROM: must be an address/],
    ['a user of a mail server without a password', { POSTHORN_SMTP_USER: 'me' }, /POSTHORN_SMTP_USER: belongs with/],
    ['a password in clear', { POSTHORN_SMTP_USER: 'me', POSTHORN_SMTP_PASSWORD: 'secret', POSTHORN_SMTP_TLS: 'off' }, /must not be off/],
    [
      'links to a page at no address',
      { POSTHORN_MAIL_CONFIRMATION: 'true' },
      /POSTHORN_PUBLIC_URL: is required with POSTHORN_MAIL_CONFIRMATION/,
    ],
    ['fewer e-mails than one channel may need', { POSTHORN_MAILS_PER_DAY: '49' }, /POSTHORN_MAILS_PER_DAY: must be between 50/],
    ['two passwords', { POSTHORN_SMTP_USER: 'me', POSTHORN_SMTP_PASSWORD: 'secret', POSTHORN_SMTP_PASSWORD_FILE: 'f' }, /set one of them/],
    ['a URL that is none', { POSTHORN_REDIS_URL: 'redis://user:secret@one:99999' }, /must be redis:/],
  ])('the configuration refuses %s', (_, variables, complaint) => {
    const mistakes = mistakesOf(() => readConfig('api', { ...needed, ...variables })).join('\n');
    expect(mistakes).toMatch(complaint);
    expect(mistakes).not.toContain('secret');
  });
});

test.each([
  [{}, undefined],
  [{ POSTHORN_PUBLIC_URL: 'https://api.example.com/' }, 'https://api.example.com'],
  [{ POSTHORN_PUBLIC_URL: 'https://api.example.com', POSTHORN_PUBLIC_INGEST_URL: 'https://in.example.com/' }, 'https://in.example.com'],
])('with %j senders reach ingest at %s', (environment, url) => {
  expect(readConfig('standalone', environment).publicIngestUrl).toBe(url);
});
