import type { IncomingHttpHeaders } from 'node:http';
import type { FilterContext } from './filter-path.ts';
import { readLargePayload, wholeJsonBytes } from './large-json.ts';
import { payloadText } from './payload-text.ts';
import { readJson } from './read-json.ts';
import { type ReadablePayload, readablePayload, requestFormat } from './readable-payload.ts';
import { type QueryParameters, queryParameters } from './sent-query.ts';

/** The input of an event's filters. The body is parsed once, when the first filter reads it. */
export class EventContext implements FilterContext {
  readonly headers: IncomingHttpHeaders;
  readonly #body: Buffer;
  readonly #query: string;
  #readable: ReadablePayload | null = null;
  #parameters: QueryParameters | null = null;
  #parsed: { payload: unknown } | null = null;

  /** `query`: without the question mark; `document`: replaces the body, which is not parsed then. */
  constructor(headers: IncomingHttpHeaders, body: Buffer, query = '', document?: object) {
    this.headers = headers;
    this.#query = query;
    this.#body = body;
    if (document !== undefined) this.#parsed = { payload: document };
  }

  /** Parses a large body in chunks, so that `payload` is available. */
  *parse(): Generator<undefined, void> {
    if (this.#parsed !== null) return;
    const readable = yield* this.decode();
    if (readable.length <= wholeJsonBytes) return;
    this.#parsed = { payload: yield* readLargePayload(readable) };
  }

  /** Returns `readable`, and yields once it was made of another text. */
  *decode(): Generator<undefined, Buffer> {
    const { readable } = this;
    if (readable !== this.#body) yield;
    return readable;
  }

  /** The body with fields: without its content coding, and a form as JSON. */
  get readable(): Buffer {
    return this.#read.bytes;
  }

  /** Whether it is no longer small without its content coding: then it is not decompressed here. */
  get isTooLarge(): boolean {
    return this.#read.isTooLarge === true;
  }

  get #read(): ReadablePayload {
    this.#readable ??= readablePayload(this.#body, requestFormat(this.headers));
    return this.#readable;
  }

  get query(): QueryParameters {
    this.#parameters ??= queryParameters(this.#query);
    return this.#parameters;
  }

  get payload(): unknown {
    this.#parsed ??= { payload: readJson(payloadText(this.readable)) };
    return this.#parsed.payload;
  }
}
