import { expect, test } from '@jest/globals';
import { checkWorkerEnvironment } from './worker-environment.ts';

const least = { POSTHORN_REDIS_URL: 'redis://redis', POSTHORN_ENCRYPTION_KEYS: `k1:${Buffer.alloc(32, 1).toString('base64')}` };

test('the least environment of a worker needs Redis', () => {
  expect(checkWorkerEnvironment(least)).toMatchObject({ opsPort: 9090, egress: { ports: [6379], cidrs: [], hasHosts: false } });
});

test('servers that the environment names must be reached on their ports', () => {
  const checked = checkWorkerEnvironment({
    ...least,
    POSTHORN_REDIS_URL: 'rediss://user:password@sentinel-a:26379,sentinel-b:26380',
    POSTHORN_REDIS_MODE: 'sentinel',
    POSTHORN_OPS_PORT: '9191',
    POSTHORN_EGRESS_PROXY_URL: 'http://proxy:3128',
    POSTHORN_EGRESS_ALLOWED_CIDRS: '10.0.0.0/8',
    POSTHORN_EGRESS_ALLOWED_HOSTS: '*.shop.svc.cluster.local,intranet',
    POSTHORN_WAREHOUSE_S3_ENDPOINT: 'https://minio.example',
    POSTHORN_SMTP_HOST: 'mail.example',
    POSTHORN_SMTP_FROM: 'posthorn@example.com',
  });
  expect(checked).toEqual({
    opsPort: 9191,
    requests: {
      egress: { allowedCidrs: ['10.0.0.0/8'], allowedHosts: ['*.shop.svc.cluster.local', 'intranet'], onlyHosts: undefined },
      endpoints: { s3: 'https://minio.example', gcs: undefined, azure: undefined },
    },
    egress: { ports: [26379, 26380, 6379, 3128, 443, 587], cidrs: ['10.0.0.0/8'], hasHosts: true },
  });
});

test('an environment with which a worker would not start is reported with its errors', () => {
  expect(checkWorkerEnvironment({ POSTHORN_REDIS_URL: 'redis://redis', POSTHORN_EGRESS_ALLOWED_HOSTS: 'a:80' })).toEqual({
    mistakes: [
      'POSTHORN_EGRESS_ALLOWED_HOSTS: must be host names separated by commas; *. may precede each',
      'POSTHORN_ENCRYPTION_KEYS: is required by delivery',
    ],
  });
});

test('a URL in a file is read from what the pool mounts, and goes behind a variable of the pool', () => {
  const { POSTHORN_REDIS_URL: _, ...others } = least;
  const given = { ...others, POSTHORN_REDIS_URL_FILE: '/etc/posthorn/redis/POSTHORN_REDIS_URL' };
  const files = new Map([['/etc/posthorn/redis/POSTHORN_REDIS_URL', 'redis://:canary@redis:7000\n']]);
  expect(checkWorkerEnvironment(given, files)).toMatchObject({ egress: { ports: [7000] } });
  expect(checkWorkerEnvironment({ ...given, POSTHORN_REDIS_URL: 'redis://own:7001' }, files)).toMatchObject({ egress: { ports: [7001] } });
  for (const text of [undefined, '', 'redis://:canary@a b']) {
    const wrong = checkWorkerEnvironment(given, new Map(text === undefined ? [] : [[given.POSTHORN_REDIS_URL_FILE, text]]));
    expect(JSON.stringify(wrong)).toMatch(/^\{"mistakes":\["POSTHORN_REDIS_URL/);
    expect(JSON.stringify(wrong)).not.toContain('canary');
  }
});
