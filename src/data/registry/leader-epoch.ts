import { PosthornError } from '../../core/errors.ts';

/** CONFLICT of an ex-leader; `details.epoch` identifies it. */
export function epochIsOver(epoch: number, newest: string | undefined): PosthornError {
  const message = `epoch ${epoch} is over; the newest is ${newest}`;
  return new PosthornError('CONFLICT', message, { details: { epoch: [message] } });
}
