import { readFileSync } from 'node:fs';
import { manifests } from '../support/helm.ts';
import { kubectl, kubectlApply } from './kubectl.ts';

const inSystem = ['--namespace', 'posthorn-system'];
const redis = 'value: "redis://redis.posthorn-system.svc.cluster.local:6379/0"';
const redisOfChart = 'valueFrom: { secretKeyRef: { name: posthorn-redis, key: POSTHORN_REDIS_URL } }';

/** Runs the Job of config/migrate by its comment, with the Redis of the chart; returns its output. */
export async function migrated(): Promise<string> {
  const text = readFileSync(new URL('../../config/migrate/migrate.yaml', import.meta.url), 'utf8');
  const objects = manifests(text.replace(redis, redisOfChart));
  await kubectlApply(objects);
  try {
    await kubectl(['wait', ...inSystem, '--for=condition=Complete', 'job/posthorn-migrate', '--timeout=120s']);
    return await kubectl(['logs', ...inSystem, 'job/posthorn-migrate']);
  } finally {
    await kubectl(['delete', '-f', '-'], JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }));
  }
}
