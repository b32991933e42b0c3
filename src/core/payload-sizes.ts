/** A larger payload is stored in chunks, and is neither parsed nor hashed in one turn of the event loop. */
export const wholePayloadBytes = 1_048_576;
/** No payload is larger, whatever is configured. */
export const largestPayloadBytes = 33_554_432;

const mebibyte = 1_048_576;

/** A payload that is stored in chunks takes no fewer MiB of memory. */
export const leastLargeMebibytes = 2;

/** In MiB, rounded up to whole ones. */
export function mebibytes(bytes: number): number {
  return Math.ceil(bytes / mebibyte);
}
