import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks';
import type { LookupAddress, LookupOptions } from 'node:dns';
import { LRUCache } from 'lru-cache';
import { accountOf } from '../../../core/account.ts';
import type { Clock } from '../../../core/clock.ts';

type Callback = (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void;

/** `dns.lookup` with `all`. */
export type NameLookup = (hostname: string, options: LookupOptions & { all: true }, callback: Callback) => void;

const accounts = new AsyncLocalStorage<string>();

/** Does the work; the names of hosts that it connects to are looked up in the share of the organization. */
export function withLookupShare<T>(org: string, work: () => T): T {
  return accounts.run(accountOf(org), work);
}

/** Default of libuv; `getaddrinfo` gets half. */
const defaultThreads = 4;
/** Slots reserved for names that Posthorn looks up for itself. */
const own = 2;
/** The share of all slots that one account may have, and the share reserved for accounts without a lookup under way. */
const share = 1 / 4;
const kept = 1 / 8;
/** Lookups of an account for names that were slow before, or that are slow and count in its share. */
const maxSlow = 2;
/** Names of an account that wait. */
const maxWaiting = 256;
/** A connection is given up after so long. */
const maxWaitMs = 60_000;
/** A lookup that takes longer is slow. */
const slowAfterMs = 2000;
/** Names that are remembered, each for so long after its last lookup. */
const maxKnown = 8192;
const knownForMs = 10 * 60_000;

/** State of a name that has not been looked up lately; below it are those that were resolved in time, above it the slow ones. */
const unknown = 1;

interface Asked {
  key: string;
  /** Name with its account. */
  name: string;
  hostname: string;
  options: LookupOptions & { all: true };
  callbacks: Callback[];
  /** 0: it was resolved in time, `unknown`, or above it how often in succession it was not. */
  slowness: number;
  sinceMs: number;
}

interface Held {
  places: number;
  /** Number of those for slow names. */
  slow: number;
}

/** Waiting lookups of an account; the last one was taken from its end. */
interface Line {
  names: Asked[];
  tookNewest: boolean;
}

/**
 * Looks names up by `lookup`, which takes a thread for each until the name server answers or has been silent for long (10 s and more). Few are looked
 * up at a time; accounts are served round-robin and within shares, so that names that hang delay their own account alone. In an account names that
 * answered in time come first, then unknown ones, alternating oldest and newest, and at last those that were slow, two at a time. Concurrent
 * lookups of a name in an account are one.
 */
export class NameLookups {
  readonly #lookup: NameLookup;
  readonly #clock: Clock;
  readonly #places: number;
  readonly #share: number;
  readonly #kept: number;
  #underWay = 0;
  readonly #byAccount = new Map<string, Held>();
  /** Lookups under way or waiting, by account and name. */
  readonly #asked = new Map<string, Asked>();
  /** Waiting lookups by account; the next account is first. */
  readonly #waiting = new Map<string, Line>();
  /** Slowness by account and name. */
  readonly #known = new LRUCache<string, { slowness: number; untilMs: number }>({ max: maxKnown });

  /** `threads`: of libuv. */
  constructor(lookup: NameLookup, clock: Clock, threads = defaultThreads) {
    this.#lookup = lookup;
    this.#clock = clock;
    this.#places = Math.max(2, Math.floor((threads + 1) / 2) - own);
    this.#share = Math.max(1, Math.floor(this.#places * share));
    this.#kept = Math.max(1, Math.floor(this.#places * kept));
  }

  readonly lookup: NameLookup = (hostname, options, callback) => {
    const account = accounts.getStore() ?? '';
    const key = `${account} ${options.family ?? 0} ${options.hints ?? 0} ${hostname}`;
    // Another account's answer begins lookups, and one answer may have several callers: each gets it in its own context.
    const bound = AsyncResource.bind(callback);
    const asked = this.#asked.get(key);
    if (asked !== undefined) {
      asked.callbacks.push(bound);
      return;
    }
    const name = `${account} ${hostname}`;
    const slowness = this.#slownessOf(name);
    const added: Asked = { key, name, hostname, options, callbacks: [bound], slowness, sinceMs: this.#clock.now() };
    const line = this.#waiting.get(account) ?? { names: [], tookNewest: true };
    this.#asked.set(key, added);
    line.names.push(added);
    this.#waiting.set(account, line);
    this.#shorten(line);
    this.#begin();
  };

  #slownessOf(name: string): number {
    const known = this.#known.get(name);
    return known === undefined || known.untilMs < this.#clock.now() ? unknown : known.slowness;
  }

  /** Drops those whose connections were given up, and the newest of the slowest where there are too many. */
  #shorten(line: Line): void {
    const sinceMs = this.#clock.now() - maxWaitMs;
    const dropped = line.names.filter((asked) => asked.sinceMs < sinceMs);
    if (line.names.length - dropped.length > maxWaiting) {
      const slowest = line.names.reduce((worst, each) => (each.slowness >= worst.slowness ? each : worst));
      dropped.push(slowest);
    }
    if (dropped.length === 0) return;
    line.names = line.names.filter((asked) => !dropped.includes(asked));
    for (const { key } of dropped) this.#asked.delete(key);
    for (const { callbacks, hostname } of dropped) setImmediate(tell, callbacks, tooMany(hostname), []);
  }

  #begin(): void {
    for (let next = this.#next(); next !== null; next = this.#next()) {
      const { account, line, asked } = next;
      line.names.splice(line.names.indexOf(asked), 1);
      this.#waiting.delete(account);
      if (line.names.length > 0) this.#waiting.set(account, line);
      this.#run(account, asked);
    }
  }

  #next(): { account: string; line: Line; asked: Asked } | null {
    for (const [account, line] of this.#waiting) {
      const { places, slow } = this.#byAccount.get(account) ?? { places: 0, slow: 0 };
      if (this.#underWay >= this.#places - (places === 0 ? 0 : this.#kept)) continue;
      // Threads of slow names cannot be cancelled: while half of all slots are free, the account gets others instead of them.
      const counted = 2 * this.#underWay < this.#places ? Math.min(slow, maxSlow) + places - slow : places;
      if (counted >= this.#share) continue;
      this.#shorten(line);
      const asked = firstOf(line);
      if (asked === undefined) this.#waiting.delete(account);
      else if (asked.slowness <= unknown || slow < maxSlow) return { account, line, asked };
    }
    return null;
  }

  #run(account: string, asked: Asked): void {
    const held = this.#byAccount.get(account) ?? { places: 0, slow: 0 };
    this.#byAccount.set(account, held);
    this.#underWay += 1;
    held.places += 1;
    let isSlow = asked.slowness > unknown;
    if (isSlow) held.slow += 1;
    let isOverdue = false;
    const cancel = this.#clock.after(slowAfterMs, () => {
      isOverdue = true;
      if (!isSlow) held.slow += 1;
      isSlow = true;
      this.#remember(asked.name, Math.max(unknown, asked.slowness) + 1);
      this.#begin();
    });
    const end: Callback = (error, addresses) => {
      cancel();
      this.#underWay -= 1;
      held.places -= 1;
      if (isSlow) held.slow -= 1;
      if (held.places === 0) this.#byAccount.delete(account);
      this.#asked.delete(asked.key);
      if (!isOverdue) this.#remember(asked.name, 0);
      try {
        tell(asked.callbacks, error, addresses);
      } finally {
        this.#begin();
      }
    };
    try {
      this.#lookup(asked.hostname, asked.options, end);
    } catch (thrown) {
      setImmediate(end, thrown as NodeJS.ErrnoException, []);
    }
  }

  #remember(name: string, slowness: number): void {
    this.#known.set(name, { slowness, untilMs: this.#clock.now() + knownForMs });
  }
}

/** The oldest of the least slow; of unknown names the newest every other time, so that one that comes after many silent ones is not behind all of them. */
function firstOf(line: Line): Asked | undefined {
  let first: Asked | undefined;
  for (const asked of line.names) if (first === undefined || asked.slowness < first.slowness) first = asked;
  if (first?.slowness !== unknown) return first;
  line.tookNewest = !line.tookNewest;
  return line.tookNewest ? line.names.findLast(({ slowness }) => slowness === unknown) : first;
}

/** Every one, also when one throws; then throws what the first of them has thrown. */
function tell(callbacks: Callback[], error: NodeJS.ErrnoException | null, addresses: LookupAddress[]): void {
  const failures: { thrown: unknown }[] = [];
  for (const callback of callbacks) {
    try {
      callback(error, addresses);
    } catch (thrown) {
      failures.push({ thrown });
    }
  }
  const [first] = failures;
  if (first !== undefined) throw first.thrown;
}

function tooMany(hostname: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${hostname} is not looked up: too many names of the organization wait for an answer of DNS`), {
    code: 'EAI_AGAIN',
    syscall: 'getaddrinfo',
    hostname,
  });
}
