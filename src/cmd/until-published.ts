import type { RedisRegistryReader } from '../data/registry/registry-reader.ts';
import type { RoleContext } from './role-process.ts';

const lookMs = 250;

/**
 * Waits until a leader has published everything into this Redis, or the process is to stop. Until then ingest refuses every event with 503, and the
 * process is not ready (check `configuration`). A Redis that is emptied later does not make it unready: the Service keeps its endpoints, which return 503 with
 * `Retry-After`.
 */
export async function untilPublished(
  records: Pick<RedisRegistryReader, 'isPublished'>,
  { clock, readiness, stopping }: RoleContext,
): Promise<void> {
  while (!stopping.aborted) {
    // While Redis does not respond, the check `redis` gives the reason.
    if (await records.isPublished().catch(() => false)) return readiness.set('configuration', { ok: true });
    readiness.set('configuration', { ok: false, detail: 'no controller has published all resources yet' });
    await clock.sleep(lookMs, stopping);
  }
}
