/** Request properties of a URL. */
export interface HttpTarget {
  /** `http:` or `https:`. */
  protocol: string;
  /** Scheme, host and port, as parsed by WHATWG rules. Egress rules check this host, and connections go to it. */
  origin: string;
  /** Request target in origin form: path and query. */
  path: string;
  /** The query with its question mark; empty: there is none. */
  query: string;
}

// Without user info, backslashes, blanks and controls: the WHATWG parser changes more than escapes in a URL that has them, and reads it alone.
const url = /^https?:\/\/[!"$-.0->A-[\]-~\u0080-\uffff]+([/?][!"$-[\]-~\u0080-\uffff]*)?(?:#|$)/i;
const nonAscii = /[\u0080-\uffff]+/g;

/**
 * Reads an absolute URL. Path and query stay as they are written, because signatures in URLs cover their bytes; only what HTTP cannot carry is escaped. They
 * never decide where a connection goes to. Throws what is no URL.
 */
export function httpTarget(text: string): HttpTarget {
  const parsed = new URL(text);
  const written = url.exec(text);
  const target = written === null ? parsed.pathname + parsed.search : escaped(written[1] ?? '');
  const path = target.startsWith('/') ? target : `/${target}`;
  const queryAt = path.indexOf('?');
  return { protocol: parsed.protocol, origin: parsed.origin, path, query: queryAt === -1 ? '' : path.slice(queryAt) };
}

function escaped(text: string): string {
  return text.toWellFormed().replace(nonAscii, encodeURIComponent);
}
