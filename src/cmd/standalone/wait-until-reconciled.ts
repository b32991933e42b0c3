import type { Clock } from '../../core/clock.ts';
import { isPosthornError } from '../../core/errors.ts';
import { type ConfigurationKind, configurationKinds, type Kind } from '../../resources/kinds.ts';
import type { ApplyObject, Key, ResourceStore } from '../../store/store.ts';

const pollMs = 50;

/**
 * Waits until the controller has reconciled each object in its current form, whatever the result. False when the deadline
 * passes or the signal aborts before.
 */
export async function waitUntilReconciled(
  store: ResourceStore,
  objects: readonly ApplyObject[],
  { clock, deadlineMs, signal }: { clock: Clock; deadlineMs: number; signal: AbortSignal },
): Promise<boolean> {
  const untilMs = clock.now() + deadlineMs;
  let left = objects.flatMap(({ kind, metadata }) => (isReconciled(kind) ? [{ kind, metadata }] : []));
  while (left.length > 0 && clock.now() < untilMs && !signal.aborted) {
    const answers = await Promise.all(left.map((object) => isReconciledNow(store, object)));
    left = left.filter((_, i) => answers[i] === false);
    if (left.length > 0) await clock.sleep(pollMs, signal);
  }
  return left.length === 0;
}

function isReconciled(kind: Kind): kind is ConfigurationKind {
  const reconciledKinds: readonly Kind[] = configurationKinds;
  return reconciledKinds.includes(kind);
}

async function isReconciledNow(store: ResourceStore, { kind, metadata }: { kind: ConfigurationKind; metadata: Key }): Promise<boolean> {
  try {
    const object = await store.get(kind, metadata);
    if (!('status' in object)) return false;
    const { generation } = object.metadata;
    return (
      object.status?.conditions?.some(({ type, observedGeneration }) => type === 'Ready' && observedGeneration === generation) === true
    );
  } catch (error) {
    if (isPosthornError(error, 'RESOURCE_NOT_FOUND')) return true;
    throw error;
  }
}
