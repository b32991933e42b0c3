import type { ScriptArgument } from '../../redis/script.ts';
import { encodeAttempt, encodeBatchAttempt, errorLetter, type NewAttempt } from '../shard/attempt-record.ts';
import type { Settlement, Target } from './delivery-queue.ts';

/** Arguments of `settle.lua` for a settlement. */
export function settleArguments({ job, outcome, maxAttempts }: Settlement): ScriptArgument[] {
  const attempt = outcome.type === 'back' || outcome.type === 'unsent' ? null : outcome.attempt;
  const { short, long } = encoded(attempt, job);
  const [letter, detail] = outcomeArguments(outcome);
  const last = maxAttempts === null || maxAttempts === job.maxAttempts ? '' : maxAttempts;
  const tookMs = outcome.type === 'unsent' ? outcome.tookMs : (attempt?.durationMs ?? -1);
  const error = attempt === null || attempt.errorType === null ? '' : errorLetter(attempt.errorType);
  return [job.handle, `${job.messageKey} ${letter} ${tookMs} ${last} ${toCircuit(attempt, job.target)} ${error}`, detail, short, long];
}

function encoded(attempt: NewAttempt | null, { isBatch, attempts }: Settlement['job']): { short: string; long: string } {
  if (attempt === null) return { short: '', long: '' };
  return isBatch ? encodeBatchAttempt(attempt) : encodeAttempt(attempt, attempts + 1);
}

/** Text for the circuit. A 429 that is no success does not count: a receiver that requests fewer calls is healthy. */
function toCircuit(attempt: NewAttempt | null, { circuitGeneration }: Target): string {
  if (attempt === null) return '';
  if (attempt.errorType === null) return `+${circuitGeneration}`;
  return attempt.responseStatus === 429 ? '' : `-${circuitGeneration}`;
}

function outcomeArguments(outcome: Settlement['outcome']): [string, string | number] {
  switch (outcome.type) {
    case 'delivered':
      return ['d', ''];
    case 'retry':
      return ['r', Math.round(outcome.delayMs)];
    case 'dead':
      return ['q', `${outcome.isRejected === true ? '!' : ''}${outcome.reason}`];
    case 'unsent':
      return ['u', (outcome.status === 'filtered' ? 'f' : 't') + (outcome.reason ?? '')];
    case 'back':
      return ['b', ''];
  }
}
