import type { TargetObstacle } from '../history/replay-messages.ts';
import type { DeliveryView } from '../shard/messages.ts';
import { pauseReasons } from '../shard/waits.ts';
import type { Candidate } from './replay-candidates.ts';
import { maxWaitingAtTarget, type Waiting } from './replay-queueing.ts';
import type { ReplayWait } from './replay-run.ts';

const waitOf = { disabled: 'TargetDisabled', circuit: 'CircuitOpen', target_full: 'TargetFull' } as const satisfies Record<
  TargetObstacle,
  ReplayWait
>;

/** Why a replay waits for a target. `place`: null when it is unknown. */
export function waitFor(obstacle: TargetObstacle, place: Pick<Candidate, 'routeId' | 'destinationId'> | null): Waiting {
  const target = place === null ? 'A target' : `Destination ${place.destinationId} of ${place.routeId}`;
  const messages: Record<TargetObstacle, string> = {
    disabled: place === null ? 'A target is disabled.' : `${place.destinationId} or ${place.routeId} is disabled or not in force.`,
    circuit: `The circuit of ${target.charAt(0).toLowerCase()}${target.slice(1)} is not closed.`,
    target_full: `${target} has ${maxWaitingAtTarget} messages waiting.`,
  };
  return { reason: waitOf[obstacle], message: messages[obstacle] };
}

/** Why none of the queued messages is sent now; null: one of them may be. */
export function waitOfQueued(queued: readonly DeliveryView[]): Waiting | null {
  const [first] = queued;
  const obstacles = queued.map(obstacleOf);
  const [obstacle = null] = obstacles;
  return first === undefined || obstacle === null || obstacles.includes(null) ? null : waitFor(obstacle, first);
}

function obstacleOf({ waitingFor }: DeliveryView): TargetObstacle | null {
  if (waitingFor === 'circuit_open') return 'circuit';
  return pauseReasons.some((reason) => reason === waitingFor) ? 'disabled' : null;
}
