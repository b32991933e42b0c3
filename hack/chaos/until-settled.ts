import { checkShards } from '../../src/data/check/shard-check.ts';
import { eventually } from '../../test/support/eventually.ts';

/** Waits for the last message to be settled, at most so long; throws nothing when some are left. */
export async function untilSettled(installation: Parameters<typeof checkShards>[0], maxMs: number): Promise<void> {
  await eventually('the last message to be settled', maxMs, async () => (await checkShards(installation)).unfinished === 0).catch(
    () => undefined,
  );
}
