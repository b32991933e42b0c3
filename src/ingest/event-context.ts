import type { IncomingHttpHeaders } from 'node:http';
import type { FilterContext } from '../core/filter-path.ts';
import { parseLargeJson } from '../core/large-json.ts';
import { payloadText } from '../core/payload-text.ts';
import { readJson } from '../core/read-json.ts';

/** A larger body takes too long to be parsed in one turn of the event loop. */
const maxWholeBytes = 256 * 1024;

/** What the filters of an event look at. The body is parsed when the first of them asks, and once. */
export class EventContext implements FilterContext {
  readonly headers: IncomingHttpHeaders;
  readonly #body: Buffer;
  #parsed: { payload: unknown } | null = null;

  constructor(headers: IncomingHttpHeaders, body: Buffer) {
    this.headers = headers;
    this.#body = body;
  }

  /** Parses a large body in pieces, so that `payload` is there when it is asked for. */
  *parse(): Generator<undefined, void> {
    if (this.#parsed !== null || this.#body.length <= maxWholeBytes) return;
    try {
      this.#parsed = { payload: yield* parseLargeJson(this.#body) };
    } catch {
      // What cannot be read in pieces is no JSON, or has bytes that are not UTF-8, or is nested too deeply or too wide for that.
      this.#parsed = { payload: readJson(payloadText(this.#body)) };
    }
  }

  get payload(): unknown {
    this.#parsed ??= { payload: readJson(payloadText(this.#body)) };
    return this.#parsed.payload;
  }
}
