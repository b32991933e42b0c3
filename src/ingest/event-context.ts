import type { IncomingHttpHeaders } from 'node:http';
import type { FilterContext } from '../core/filter-path.ts';

/** What the filters of an event look at. The body is parsed when the first of them asks, and once. */
export class EventContext implements FilterContext {
  readonly headers: IncomingHttpHeaders;
  readonly #body: Buffer;
  #parsed: { payload: unknown } | null = null;

  constructor(headers: IncomingHttpHeaders, body: Buffer) {
    this.headers = headers;
    this.#body = body;
  }

  get payload(): unknown {
    this.#parsed ??= { payload: parse(this.#body) };
    return this.#parsed.payload;
  }
}

function parse(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    return undefined;
  }
}
