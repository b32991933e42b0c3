import { PosthornError } from './errors.ts';

/**
 * Counts how often an event that began as one of Posthorn's own has been sent on, so that a loop over sources ends. An own event begins at 0; a delivery
 * sends one more than its event has, where that has the header.
 */
export const hopHeader = 'x-posthorn-hop';

/** Annotation of an object that a request with that header has made: the same number. */
export const hopAnnotation = 'posthorn.dev/hop';

/** Events with more are refused. */
export const maxHops = 8;

/** Returns the number in a header; null: it is no whole number from 0 to `maxHops`. */
function hopCount(value: string): number | null {
  return /^\d$/.test(value) && Number(value) <= maxHops ? Number(value) : null;
}

/** Returns the number in the header of a request that brings an event; null: it has none. FORBIDDEN when it is above `maxHops` or no whole number. */
export function hopOfRequest(header: string | string[] | undefined): number | null {
  if (header === undefined) return null;
  const hop = typeof header === 'string' ? hopCount(header) : null;
  if (hop !== null) return hop;
  throw new PosthornError(
    'FORBIDDEN',
    `${hopHeader} is ${String(header).slice(0, 20)}, which is no whole number up to ${maxHops}: events of Posthorn's own seem to go round in a loop`,
  );
}

/** Returns the number in the annotation of an object; null: it has none. */
export function hopOfObject({ annotations }: { annotations?: Record<string, string> | undefined }): number | null {
  return hopCount(annotations?.[hopAnnotation] ?? '');
}

/** Returns the number in the headers of a stored event; null: it has none. */
export function hopOf(headers: readonly (readonly [name: string, value: string])[]): number | null {
  const value = headers.find(([name]) => name === hopHeader)?.[1];
  return value === undefined ? null : hopCount(value);
}
