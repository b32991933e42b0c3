/** Headers by name; one that came several times is joined, as RFC 9110 section 5.3 allows. */
export function joinedHeaders(headers: readonly (readonly [string, string])[]): Record<string, string> {
  const joined = new Map<string, string>();
  for (const [name, value] of headers) {
    const before = joined.get(name);
    joined.set(name, before === undefined ? value : `${before}, ${value}`);
  }
  return Object.fromEntries(joined);
}
