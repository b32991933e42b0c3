/** Divides a list into parts whose members have at most `most` of size together, or one member each. Without `sizeOf` each member has the size 1. */
export function inParts<T>(all: readonly T[], most: number, sizeOf: (one: T) => number = () => 1): T[][] {
  const parts: T[][] = [];
  let room = 0;
  for (const each of all) {
    const size = sizeOf(each);
    if (size > room || parts.length === 0) {
      parts.push([]);
      room = most;
    }
    parts.at(-1)?.push(each);
    room -= size;
  }
  return parts;
}
