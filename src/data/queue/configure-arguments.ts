import type { ScriptArgument } from '../../redis/script.ts';
import { pauseLetter } from '../shard/waits.ts';
import type { FailoverOfGone, SharedLimiter, Target, TargetSetting } from './delivery-queue.ts';
import { limiterSetting } from './throttle.ts';

const movesOnLetters = { nobody: '', guests: 'g', all: 'a' } satisfies Record<TargetSetting['movesOn'], string>;

/** What `configure.lua` takes for the setting of a target of the shard. */
export function configureArguments(target: Target, setting: TargetSetting, shard: number): ScriptArgument[] {
  const { revision, paused, pausedFor, movesOn, throttle, sharedLimiter, priority, circuit, failover, batch, inOrder } = setting;
  const { hasAlerts, hasOwnEvents } = setting;
  const { emissionUs, burst, concurrency, queueLimit } = limiterSetting(throttle);
  return [
    target.number,
    revision,
    paused && movesOn !== 'all' ? 1 : 0,
    emissionUs ?? '',
    burst ?? '',
    concurrency ?? '',
    queueLimit ?? '',
    priority,
    circuit.failureThreshold,
    circuit.cooldownSeconds * 1000,
    circuit.probeSuccessThreshold,
    failover.afterAttempts ?? '',
    batch?.layout ?? '',
    batch?.records ?? '',
    batch?.bytes ?? '',
    batch?.ageMs ?? '',
    hasAlerts ? 1 : 0,
    sharedLimiter?.id ?? '',
    sharedLimiter?.revision ?? '',
    sharedLimiter === null ? '' : windowsText(sharedLimiter),
    movesOnLetters[movesOn],
    pauseLetter(pausedFor),
    hasOwnEvents ? 1 : 0,
    inOrder === null ? '' : inOrder ? 1 : 0,
    (failover.awaited ?? []).join(' '),
    ...namesOf(failover.destinations, shard),
  ];
}

/** As `configure.lua` takes destinations. */
function namesOf(destinations: NonNullable<FailoverOfGone>, ownShard: number): string[] {
  return destinations.map(({ id, shard }) => (shard === ownShard ? id : `${shard}/${id}`));
}

/** Where what a target has queued goes, as `drop.lua` takes it. */
export function wayOut(failover: FailoverOfGone, shard: number): string {
  return failover === null ? '' : `<${namesOf(failover, shard).join(' ')}`;
}

export function windowsText({ windows }: SharedLimiter): string {
  return windows.map(({ ms, most }) => `${ms} ${most}`).join(' ');
}
