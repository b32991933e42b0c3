import type { IncomingMessage } from 'node:http';
import type { Clock } from '../core/clock.ts';
import { PosthornError } from '../core/errors.ts';
import { freeBuffer } from '../core/free-buffer.ts';
import type { OpenShares } from '../core/open-shares.ts';
import type { OrganizationBudget } from '../core/organization-budget.ts';
import { mebibytes, wholePayloadBytes } from '../core/payload-sizes.ts';
import type { SpareBuffer } from '../core/spare-buffer.ts';
import type { IngestLimits } from './limits.ts';

/** Thrown when the sender hangs up before its body is read: no response is needed. */
export const hungUp = Symbol('hung up');

/** Memory of bodies, in all and per organization. */
export interface BodyMemory {
  limits: Pick<IngestLimits, 'bodyDeadlineMs'>;
  /** Memory of bodies up to 1 MiB. */
  shares: { bytes: OpenShares };
  /** Memory of larger ones, in MiB. */
  largeBudget: OrganizationBudget;
  spare: SpareBuffer;
  clock: Clock;
}

/** Interval of pace checks of a large body, beginning with the second one. */
const paceCheckMs = 1000;
/** Share of the pace at which all reserved bytes would arrive in time. */
const leastPace = 1 / 2;

function nothing(): void {}

/** Notifications of a body reader to its waiter. */
export interface Waits {
  /** The body waits for memory before more of it is read: this time is no fault of the sender. */
  waitsForBudget(): void;
  reads(): void;
  /** It is answered; further bytes are dropped. */
  readonly aborted: boolean;
  /** Aborted when it is over. */
  readonly signal: AbortSignal;
}

/**
 * The body of one request. One up to 1 MiB is refused if it exceeds the memory budget. A larger one reserves memory for all of it, as `Content-Length`
 * announces it or else as the source allows, before it is read, and waits for that: it is written into one piece of memory as it comes. One that comes at
 * less than half of the pace at which it would be there in time yields to others that wait for its memory.
 */
export class ArrivingBody {
  readonly #room: BodyMemory;
  readonly #request: IncomingMessage;
  readonly #org: string;
  readonly #source: string;
  readonly #limitBytes: number;
  #chunks: Buffer[] = [];
  /** All of a large body. */
  #whole: Buffer | null = null;
  #size = 0;
  /** Bytes of the small-body budget. */
  #taken = 0;
  #leave: (() => void) | null = null;
  #endPace = nothing;
  #stopArrival = nothing;

  constructor(
    room: BodyMemory,
    request: IncomingMessage,
    { org, source, limitBytes }: { org: string; source: string; limitBytes: number },
  ) {
    this.#room = room;
    this.#request = request;
    this.#org = org;
    this.#source = source;
    this.#limitBytes = limitBytes;
  }

  get size(): number {
    return this.#size;
  }

  /** Rejects with PAYLOAD_TOO_LARGE, with UNAVAILABLE without memory, or with `hungUp`. */
  async read(waits: Waits): Promise<Buffer> {
    const announced = Number(this.#request.headers['content-length'] ?? 0);
    if (announced > this.#limitBytes) throw payloadTooLarge(this.#limitBytes);
    if (announced > wholePayloadBytes) await this.#takeBudget(announced, waits);
    return await this.#arrival(announced, waits);
  }

  /** `read` rejects with `hungUp` at once, and the memory is freed, whatever the sender still does. */
  stop(): void {
    this.#stopArrival();
  }

  /** Releases its memory. */
  giveBack(): void {
    this.#giveBackSmall();
    this.#endPace();
    this.#leave?.();
    this.#leave = null;
    this.#whole = null;
    this.#chunks = [];
  }

  /** To be called once its event is stored: the memory of a large body is that of another one of its source from then on. */
  free(): void {
    if (this.#whole !== null) this.#room.spare.giveBack(this.#source, this.#whole);
    this.#whole = null;
  }

  #giveBackSmall(): void {
    this.#room.shares.bytes.giveBack(this.#org, this.#taken, this.#source);
    this.#taken = 0;
  }

  async #takeBudget(bytes: number, waits: Waits): Promise<void> {
    const signal = waits.signal;
    waits.waitsForBudget();
    const leave = await this.#room.largeBudget.enter(this.#org, mebibytes(bytes), { source: this.#source, signal });
    if (leave === null) throw overShare();
    if (signal.aborted) {
      leave();
      throw hungUp;
    }
    this.#leave = leave;
    waits.reads();
    this.#whole = this.#room.spare.take(this.#source, bytes);
    for (const chunk of this.#chunks) this.#append(this.#whole, chunk);
    this.#chunks = [];
    this.#giveBackSmall();
  }

  #append(whole: Buffer, chunk: Buffer): void {
    this.#size += chunk.copy(whole, this.#size);
    freeBuffer(chunk);
  }

  #arrival(announced: number, waits: Waits): Promise<Buffer> {
    const request = this.#request;
    return new Promise((resolve, reject) => {
      this.#stopArrival = () => reject(hungUp);
      if (this.#whole !== null) this.#keepPace(announced, reject);
      if (request.destroyed && !request.complete) reject(hungUp);
      request.on('data', (chunk: Buffer) => {
        if (waits.aborted) return;
        const size = this.#size + chunk.length;
        if (size > this.#limitBytes) return reject(payloadTooLarge(this.#limitBytes));
        if (this.#whole !== null) return this.#append(this.#whole, chunk);
        if (size > wholePayloadBytes) return this.#grow(chunk, waits, reject).catch(reject);
        const { bytes } = this.#room.shares;
        if (!bytes.take(this.#org, chunk.length, this.#source)) return reject(bytes.hasFree(chunk.length) ? overShare() : overloaded());
        this.#taken += chunk.length;
        this.#size = size;
        this.#chunks.push(chunk);
      });
      request.on('end', () => resolve(this.#all()));
      request.on('error', () => reject(hungUp));
      request.on('close', () => reject(hungUp));
    });
  }

  /** A body without a content length turns out to be large. */
  async #grow(chunk: Buffer, waits: Waits, refuse: (error: PosthornError) => void): Promise<void> {
    this.#request.pause();
    this.#chunks.push(chunk);
    this.#size = 0;
    await this.#takeBudget(this.#limitBytes, waits);
    this.#keepPace(this.#limitBytes, refuse);
    this.#request.resume();
  }

  /** Restarts. A time in which this process was stopped counts as one check. */
  #keepPace(bytes: number, refuse: (error: PosthornError) => void): void {
    const { clock, limits, largeBudget } = this.#room;
    const look = (times: number): void => {
      this.#endPace = clock.after(paceCheckMs, () => {
        const least = (leastPace * bytes * times * paceCheckMs) / limits.bodyDeadlineMs;
        if (times > 1 && this.#size < least && largeBudget.holdsUp(this.#org, this.#source)) refuse(tooSlow());
        else look(times + 1);
      });
    };
    look(1);
  }

  #all(): Buffer {
    const [first] = this.#chunks;
    const chunks = this.#chunks;
    this.#chunks = [];
    this.#endPace();
    if (this.#whole !== null) return this.#whole.subarray(0, this.#size);
    return chunks.length === 1 && first !== undefined ? first : Buffer.concat(chunks);
  }
}

function payloadTooLarge(limitBytes: number): PosthornError {
  return new PosthornError('PAYLOAD_TOO_LARGE', `The body is larger than ${limitBytes} bytes`);
}

function tooSlow(): PosthornError {
  return new PosthornError(
    'UNAVAILABLE',
    'The body arrives slowly while others wait for the memory that it occupies; please send it again',
    {
      retryAfterSeconds: 1,
    },
  );
}

/** Refusal of requests or bytes beyond the share of an organization. */
export function overShare(): PosthornError {
  return new PosthornError('UNAVAILABLE', 'Too many events of the organization arrive at the same time; please send it again', {
    retryAfterSeconds: 1,
  });
}

export function overloaded(): PosthornError {
  return new PosthornError('UNAVAILABLE', 'Too many requests are under way', { retryAfterSeconds: 1 });
}
