import type { TargetSetting } from '../../data/queue/delivery-queue.ts';

/** Returns the setting of a target whose organization is retained: its messages wait until the organization is made again, or until they are pruned. */
export function retainedSetting(setting: TargetSetting): TargetSetting {
  const pausedFor = setting.pausedFor ?? 'route_disabled';
  return { ...setting, revision: `${setting.revision}.held`, paused: true, pausedFor, movesOn: 'nobody' };
}
