import { expect, test } from '@jest/globals';
import { judgeWorkerEnvironment } from './worker-environment.ts';

const least = { POSTHORN_REDIS_URL: 'redis://redis', POSTHORN_ENCRYPTION_KEYS: `k1:${Buffer.alloc(32, 1).toString('base64')}` };

test('the least environment of a worker needs Redis', () => {
  expect(judgeWorkerEnvironment(least)).toMatchObject({ opsPort: 9090, reach: { ports: [6379], cidrs: [], hasHosts: false } });
});

test('servers that the environment names must be reached on their ports', () => {
  const judged = judgeWorkerEnvironment({
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
  expect(judged).toEqual({
    opsPort: 9191,
    requests: {
      egress: { allowedCidrs: ['10.0.0.0/8'], allowedHosts: ['*.shop.svc.cluster.local', 'intranet'], onlyHosts: undefined },
      endpoints: { s3: 'https://minio.example', gcs: undefined, azure: undefined },
    },
    reach: { ports: [26379, 26380, 6379, 3128, 443, 587], cidrs: ['10.0.0.0/8'], hasHosts: true },
  });
});

test('an environment with which a worker would not start is reported with its errors', () => {
  expect(judgeWorkerEnvironment({ POSTHORN_REDIS_URL: 'redis://redis', POSTHORN_EGRESS_ALLOWED_HOSTS: 'a:80' })).toEqual({
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
  expect(judgeWorkerEnvironment(given, files)).toMatchObject({ reach: { ports: [7000] } });
  expect(judgeWorkerEnvironment({ ...given, POSTHORN_REDIS_URL: 'redis://own:7001' }, files)).toMatchObject({ reach: { ports: [7001] } });
  for (const text of [undefined, '', 'redis://:canary@a b']) {
    const wrong = judgeWorkerEnvironment(given, new Map(text === undefined ? [] : [[given.POSTHORN_REDIS_URL_FILE, text]]));
    expect(JSON.stringify(wrong)).toMatch(/^\{"mistakes":\["POSTHORN_REDIS_URL/);
    expect(JSON.stringify(wrong)).not.toContain('canary');
  }
});
