import type { Clock } from '../../core/clock.ts';
import type { RecordByKind } from '../../core/records.ts';
import type { RegistryReader } from '../../data/registry/registry.ts';
import type { TaskContext } from './task-handler.ts';

/** How long a task waits for the record of a resource as it was changed last. */
const recordWaitMs = 2000;
const recordLookMs = 50;

/** The organization's record of this generation, or a later one; null: there is none yet. */
export async function awaitedRecord<K extends 'destination' | 'notificationChannel' | 'cronJob'>(
  { registry, clock }: { registry: RegistryReader; clock: Clock },
  kind: K,
  id: string,
  generation: number,
  { org, signal }: TaskContext,
): Promise<RecordByKind[K] | null> {
  for (const untilMs = clock.now() + recordWaitMs; ; await clock.sleep(recordLookMs, signal)) {
    const record = await registry.getOf(org, kind, id);
    if (record !== null && record.generation >= generation) return record;
    if (clock.now() >= untilMs || signal.aborted) return null;
  }
}
