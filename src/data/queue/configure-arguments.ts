import { namedArgument } from '../../redis/script.ts';
import { pauseLetter } from '../shard/waits.ts';
import type { DeletedTargetFailover, SharedLimiter, Target, TargetSetting } from './delivery-queue.ts';
import { limiterSetting } from './throttle.ts';

const movesOnLetters = { nobody: undefined, guests: 'g', all: 'a' } satisfies Record<TargetSetting['movesOn'], string | undefined>;

/** Arguments of `configure.lua` for the setting of a target of the shard. */
export function configureArgument(target: Target, setting: TargetSetting, shard: number): string {
  const { revision, paused, pausedFor, movesOn, throttle, sharedLimiter, priority, circuit, failover, batch, inOrder } = setting;
  const { hasAlerts, hasOwnEvents } = setting;
  const { emissionUs, burst, concurrency, queueLimit } = limiterSetting(throttle);
  return namedArgument({
    target: target.number,
    revision,
    isPaused: paused && movesOn !== 'all',
    priority,
    emissionUs,
    burst,
    concurrency,
    maxQueued: queueLimit,
    failureThreshold: circuit.failureThreshold,
    cooldownMs: circuit.cooldownSeconds * 1000,
    successThreshold: circuit.probeSuccessThreshold,
    batch,
    hasAlerts,
    hasOwnEvents,
    sharedLimiter: sharedLimiter && { id: sharedLimiter.id, revision: sharedLimiter.revision, windows: windowsText(sharedLimiter) },
    movesOn: movesOnLetters[movesOn],
    pausedFor: pausedFor && pauseLetter(pausedFor),
    inOrder,
    failover: {
      targets: namesOf(failover.destinations, shard),
      awaited: failover.awaited ?? [],
      afterAttempts: failover.afterAttempts,
    },
  });
}

/** As `configure.lua` takes destinations. */
function namesOf(destinations: NonNullable<DeletedTargetFailover>, ownShard: number): string[] {
  return destinations.map(({ id, shard }) => (shard === ownShard ? id : `${shard}/${id}`));
}

/** Where what a target has queued goes, as `drop.lua` takes it. */
export function failoverArgument(failover: DeletedTargetFailover, shard: number): string {
  return failover === null ? '' : `<${namesOf(failover, shard).join(' ')}`;
}

export function windowsText({ windows }: SharedLimiter): string {
  return windows.map(({ ms, most }) => `${ms} ${most}`).join(' ');
}
