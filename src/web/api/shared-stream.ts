import type { ServerEvent } from './server-events.ts';

/** The channel is that of the program, as the lock is. */
const channelName = 'posthorn-stream';

/** Messages of the window that has the stream to the others. `ask`: another window searches for it. */
type Told =
  | { is: 'ask' }
  | { is: 'has'; url: string; isConnected: boolean }
  | { is: 'events'; url: string; events: readonly ServerEvent[] };

/** Events are sent together, at most so long after the first of them: each message costs a window that shows many a part of its time. */
const gatherMs = 100;

/** The window that has the stream follows the same and is connected, follows the same and is not, or follows something else. */
export type Holder = 'connected' | 'unconnected' | 'other';

interface Follower {
  onEvent: (event: ServerEvent) => void;
  /** Another window has the stream. */
  onHolder: (holder: Holder) => void;
}

/** Hands the events of the live stream from the window that has it to the other windows of the browser that follow the same address. */
export class SharedStream {
  readonly #url: string;
  readonly #channel: BroadcastChannel;
  readonly #ended: AbortSignal;
  #hasIt = false;
  #isConnected = false;
  #follower: Follower | null = null;
  #untold: ServerEvent[] = [];
  /** The last known state of the window that has the stream; null: unknown. */
  #holder: Holder | null = null;

  constructor(url: string, ended: AbortSignal) {
    this.#url = url;
    this.#ended = ended;
    this.#channel = new BroadcastChannel(channelName);
    this.#channel.addEventListener('message', ({ data }: MessageEvent<Told>) => this.#hear(data));
    ended.addEventListener('abort', () => this.#channel.close(), { once: true });
  }

  /** Answers the other windows while `work` runs: this one has the stream. */
  async having(work: () => Promise<void>): Promise<void> {
    this.#hasIt = true;
    this.tellConnected(false);
    try {
      await work();
    } finally {
      this.#tellAll();
      this.#hasIt = false;
    }
  }

  /** This window, which has the stream, is connected or is not. */
  tellConnected(isConnected: boolean): void {
    this.#isConnected = isConnected;
    this.#tellAll();
    this.#say({ is: 'has', url: this.#url, isConnected });
  }

  /** This window, which has the stream, has got the event. */
  tell(event: ServerEvent): void {
    this.#untold.push(event);
    if (this.#untold.length === 1) setTimeout(() => this.#tellAll(), gatherMs);
  }

  #tellAll(): void {
    const events = this.#untold;
    this.#untold = [];
    if (events.length > 0) this.#say({ is: 'events', url: this.#url, events });
  }

  /** Listens to the window with the stream. Returns the stop function. */
  follow(follower: Follower): () => void {
    this.#follower = follower;
    this.#holder = null;
    this.#say({ is: 'ask' });
    return () => {
      this.#follower = null;
    };
  }

  #hear(told: Told): void {
    if (told.is === 'ask') {
      if (this.#hasIt) this.tellConnected(this.#isConnected);
      return;
    }
    const holder = holderIn(told, this.#url);
    if (holder !== this.#holder) this.#follower?.onHolder(holder);
    this.#holder = holder;
    if (told.is === 'events' && holder === 'connected') for (const event of told.events) this.#follower?.onEvent(event);
  }

  #say(told: Told): void {
    // A closed channel takes nothing.
    if (!this.#ended.aborted) this.#channel.postMessage(told);
  }
}

function holderIn(told: Exclude<Told, { is: 'ask' }>, url: string): Holder {
  if (told.url !== url) return 'other';
  return told.is === 'events' || told.isConnected ? 'connected' : 'unconnected';
}
