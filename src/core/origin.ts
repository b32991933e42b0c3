/** Scheme, host and port of a URL. The text itself when it is none, or one without an origin, such as `data:`: each is its own origin. */
export function originOf(url: string): string {
  const origin = URL.parse(url)?.origin;
  return origin === undefined || origin === 'null' ? url : origin;
}
