import type { IncomingHttpHeaders } from 'node:http';
import type { FilterContext } from '../core/filter-path.ts';
import { readJson } from '../core/read-json.ts';

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
    this.#parsed ??= { payload: readJson(this.#body.toString('utf8')) };
    return this.#parsed.payload;
  }
}
