import type { Clock } from '../../core/clock.ts';
import type { Logger } from '../../core/logger.ts';
import type { ObjectOf, PosthornKind } from '../../resources/kinds.ts';
import type { Condition } from '../../resources/metadata.ts';
import type { FieldManager, ResourceStore } from '../../store/store.ts';
import { type Finding, timestamp } from '../conditions.ts';
import type { EventRecorder } from '../event-recorder.ts';

const intervalMs = 30_000;

export interface HealthConditionsOptions {
  store: Pick<ResourceStore, 'applyStatus'>;
  clock: Clock;
  recorder: EventRecorder;
}

/** Calls `look` about every half minute until the signal aborts; one that fails is logged with `failure`. */
export async function checkPeriodically(
  check: () => Promise<void>,
  { clock, logger, failure }: { clock: Clock; logger: Logger; failure: string },
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    try {
      await check();
    } catch (error) {
      logger.debug({ err: error }, `${failure}; retrying`);
    }
    await clock.sleep(intervalMs * (0.9 + Math.random() * 0.2), signal);
  }
}

/** All conditions of one manager, by their type; null: there is to be none. */
export type HealthFindings = Readonly<Record<string, Finding | null>>;

/** Whether the status of the object differs. */
export function isStale(object: { status?: { conditions?: readonly Condition[] } | undefined }, findings: HealthFindings): boolean {
  return Object.entries(findings).some(([type, finding]) => !isReported(conditionOf(object, type), finding));
}

/** Brings the conditions of `manager` to the findings, with an event for each that is new. */
export async function writeHealthConditions<K extends PosthornKind>(
  kind: K,
  object: ObjectOf<K>,
  findings: HealthFindings,
  { store, clock, recorder, manager }: HealthConditionsOptions & { manager: FieldManager },
): Promise<void> {
  const { name, namespace, generation, uid } = object.metadata;
  const conditions: Condition[] = [];
  const news: Finding[] = [];
  for (const [type, finding] of Object.entries(findings)) {
    if (finding === null) continue;
    const before = conditionOf(object, type);
    const lastTransitionTime = before?.status === finding.status ? before.lastTransitionTime : timestamp(clock.now());
    conditions.push({ type, ...finding, lastTransitionTime, observedGeneration: generation });
    if (!isReported(before, finding)) news.push(finding);
  }
  const key = namespace === undefined ? { name } : { namespace, name };
  await store.applyStatus(kind, key, { conditions }, { manager, force: true, ifUid: uid });
  for (const finding of news) recorder.record({ object, type: finding.status === 'True' ? 'Normal' : 'Warning', ...finding });
}

export function conditionOf(object: { status?: { conditions?: readonly Condition[] } | undefined }, type: string): Condition | undefined {
  return object.status?.conditions?.find((condition) => condition.type === type);
}

function isReported(condition: Condition | undefined, finding: Finding | null): boolean {
  if (finding === null) return condition === undefined;
  return condition?.status === finding.status && condition.reason === finding.reason && condition.message === finding.message;
}
