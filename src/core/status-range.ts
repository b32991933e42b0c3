/** Statuses of responses, both ends included. */
export interface StatusRange {
  first: number;
  last: number;
}

/** Returns the range that a status such as `503`, or a class such as `5xx`, means. */
export function statusRange(status: string): StatusRange {
  const first = Number(status.replace(/xx$/i, '00'));
  return { first, last: /xx$/i.test(status) ? first + 99 : first };
}
