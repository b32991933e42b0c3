/** A status, or a class of statuses such as `2xx`, that counts as success. */
export type SuccessStatus = number | string;

/** All statuses of these. */
export function statusesOf(given: readonly SuccessStatus[]): number[] {
  return given.flatMap((each) =>
    typeof each === 'number' ? [each] : Array.from({ length: 100 }, (_, i) => Number(each.slice(0, 1)) * 100 + i),
  );
}
