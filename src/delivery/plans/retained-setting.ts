import type { TargetSetting } from '../../data/queue/delivery-queue.ts';

/** Of an organization that was deleted: its messages wait until it is made again, or their time is over. */
export function retainedSetting(setting: TargetSetting): TargetSetting {
  const pausedFor = setting.pausedFor ?? 'route_disabled';
  return { ...setting, revision: `${setting.revision}.held`, paused: true, pausedFor, movesOn: 'nobody' };
}
