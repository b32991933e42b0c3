import type { ObjectOf, PosthornObject } from '../../resources/kinds.ts';
import type { Call } from '../operation.ts';
import type { ServedKind } from '../services.ts';
import { waitForCache } from './cache-wait.ts';

const notYetInForce = 'not yet in force';

/** Whether the record of this generation, or a later one, is where ingest and delivery read it. */
function isProgrammed(object: PosthornObject<ServedKind>, generation: number): boolean {
  const programmed = object.status?.conditions?.find((condition) => condition.type === 'Programmed');
  return programmed?.status === 'True' && (programmed.observedGeneration ?? 0) >= generation;
}

/** Waits until a written object is in force; otherwise the answer gets a warning (API decisions, "Both families"). */
export async function awaitInForce<K extends ServedKind>(
  call: Call,
  kind: K,
  written: ObjectOf<K>,
  timeoutMs = call.services.inForceTimeoutMs,
): Promise<void> {
  const { uid, generation } = written.metadata;
  const { caches, clock } = call.services;
  const reached = await waitForCache(
    caches[kind],
    written.metadata,
    (object) => object !== undefined && (object.metadata.uid !== uid || isProgrammed(object, generation)),
    { timeoutMs, clock },
  );
  if (!reached) call.warn(notYetInForce);
}

/** Waits until a deleted object has left the lists of this replica. */
export async function awaitGone<K extends ServedKind>(call: Call, kind: K, deleted: ObjectOf<K>): Promise<void> {
  const { caches, clock, inForceTimeoutMs: timeoutMs } = call.services;
  const reached = await waitForCache(caches[kind], deleted.metadata, (object) => object?.metadata.uid !== deleted.metadata.uid, {
    timeoutMs,
    clock,
  });
  if (!reached) call.warn(notYetInForce);
}

/** How long an import waits when its writes have taken since `startedAtMs`: as a single write, but not as long again. */
export function waitAfter(call: Call, startedAtMs: number): number {
  const { clock, inForceTimeoutMs } = call.services;
  return Math.max(inForceTimeoutMs / 4, inForceTimeoutMs - (clock.now() - startedAtMs));
}
