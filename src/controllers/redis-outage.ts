import { RedisUnavailableError } from '../core/redis-unavailable-error.ts';
import type { ObjectOf, PosthornKind } from '../resources/kinds.ts';
import type { Condition } from '../resources/metadata.ts';
import type { ResourceCache } from '../store/cache.ts';
import type { ConditionInputs, Finding } from './conditions.ts';
import { earlierInForce } from './programmed-condition.ts';
import type { StatusWriter } from './status-writer.ts';

const away = { reason: 'Unavailable', message: 'Redis does not answer; the generation is programmed as soon as it does' } as const;
const unknown: Finding = { status: 'Unknown', ...away };
const no: Finding = { status: 'False', ...away };

/** The message is constant, so the status is written once per outage. The reason tells referring objects that the earlier generation is still served. */
function conditionInputs({ status }: { status?: { conditions?: Condition[] | undefined } | undefined }): ConditionInputs {
  const before = status?.conditions?.find(({ type }) => type === 'Programmed');
  const isEarlierInForce = before?.status === 'True' || before?.reason === earlierInForce;
  const message = `an earlier generation remains programmed: ${away.message}`;
  const programmed: Finding = isEarlierInForce ? { status: 'False', reason: earlierInForce, message } : no;
  return {
    findings: [
      ['Accepted', unknown],
      ['ResolvedRefs', unknown],
      ['Programmed', programmed],
    ],
    ready: no,
    isStalled: false,
  };
}

/**
 * Runs the step that programs an object. When Redis is down, the status of a generation without conditions reports it, once; those of
 * the generation before the outage stay. Throws what the step throws, so that the object is tried again.
 */
export async function sayingOutage<K extends PosthornKind, T>(
  { status, cache, object, id }: { status: StatusWriter; cache: ResourceCache<K>; object: ObjectOf<K>; id: string },
  step: () => Promise<T>,
): Promise<T> {
  try {
    return await step();
  } catch (error) {
    const isNews = object.status?.observedGeneration !== object.metadata.generation;
    // The resources may be in the same Redis, and the object may have changed: what the step threw counts.
    if (error instanceof RedisUnavailableError && isNews)
      await status.writeConditions(cache, object, conditionInputs(object), { id }).catch(() => undefined);
    throw error;
  }
}
