import { PosthornError } from '../../core/errors.ts';

/** The output of a route's transform for an event; it is sent instead of the payload. */
export interface EventOutput {
  contentType: string;
  body: Buffer;
}

/** As stored in `y:<event>`: the content type, a line feed, the body. */
export function encodeOutput({ contentType, body }: EventOutput): Buffer {
  return Buffer.concat([Buffer.from(`${contentType}\n`), body]);
}

/** Throws INTERNAL for a text that `encodeOutput` has not made. */
export function decodeOutput(stored: Buffer): EventOutput {
  const end = stored.indexOf(10);
  if (end < 0) throw new PosthornError('INTERNAL', 'a kept output is malformed');
  return { contentType: stored.toString('utf8', 0, end), body: stored.subarray(end + 1) };
}
