import { AsyncLocalStorage } from 'node:async_hooks';
import type { LookupAddress, LookupOptions } from 'node:dns';
import { accountOf } from '../../../core/account.ts';

type Callback = (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void;

/** `dns.lookup` with `all`. */
export type NameLookup = (hostname: string, options: LookupOptions & { all: true }, callback: Callback) => void;

const accounts = new AsyncLocalStorage<string>();

/** Does the work; the names of hosts that it connects to are looked up in the share of the organization. */
export function lookingUpFor<T>(org: string, work: () => T): T {
  return accounts.run(accountOf(org), work);
}

/** Of libuv where nothing else is said; `getaddrinfo` gets half. */
const defaultThreads = 4;
/** Places that stay for names that Posthorn looks up for itself. */
const own = 2;
/** The part of all places that one account may have, and the part that only accounts without a lookup under way may take. */
const share = 1 / 4;
const kept = 1 / 8;
/** Names of an account that wait: attempts that are given up leave theirs behind. */
const maxWaiting = 256;

interface Asked {
  hostname: string;
  options: LookupOptions & { all: true };
  callbacks: Callback[];
}

/**
 * Looks names up by `lookup`, which takes a thread for each until the name server answers or has been silent for long (10 s and more). Few are looked
 * up at a time; accounts take turns, and none has more than its share, so that names that hang delay their own account alone. What an account asks for
 * twice at a time is looked up once.
 */
export class NameLookups {
  readonly #lookup: NameLookup;
  readonly #places: number;
  readonly #share: number;
  readonly #kept: number;
  #underWay = 0;
  readonly #byAccount = new Map<string, number>();
  /** What is asked for, under way or waiting, by account and name. */
  readonly #asked = new Map<string, Asked>();
  /** By account, whose turn it is first. */
  readonly #waiting = new Map<string, string[]>();

  /** `threads`: of libuv. */
  constructor(lookup: NameLookup, threads = defaultThreads) {
    this.#lookup = lookup;
    this.#places = Math.max(2, Math.floor((threads + 1) / 2) - own);
    this.#share = Math.max(1, Math.floor(this.#places * share));
    this.#kept = Math.max(1, Math.floor(this.#places * kept));
  }

  readonly lookup: NameLookup = (hostname, options, callback) => {
    const account = accounts.getStore() ?? '';
    const key = `${account} ${options.family ?? 0} ${options.hints ?? 0} ${hostname}`;
    const asked = this.#asked.get(key);
    if (asked !== undefined) {
      asked.callbacks.push(callback);
      return;
    }
    const line = this.#waiting.get(account) ?? [];
    if (line.length >= maxWaiting) {
      setImmediate(() => callback(tooMany(hostname), []));
      return;
    }
    this.#asked.set(key, { hostname, options, callbacks: [callback] });
    line.push(key);
    this.#waiting.set(account, line);
    this.#begin();
  };

  #begin(): void {
    for (let account = this.#next(); account !== undefined; account = this.#next()) {
      const line = this.#waiting.get(account) ?? [];
      const key = line.shift() ?? '';
      this.#waiting.delete(account);
      if (line.length > 0) this.#waiting.set(account, line);
      this.#run(account, key);
    }
  }

  #next(): string | undefined {
    for (const account of this.#waiting.keys()) {
      const held = this.#byAccount.get(account) ?? 0;
      if (held < this.#share && this.#underWay < this.#places - (held === 0 ? 0 : this.#kept)) return account;
    }
    return undefined;
  }

  #run(account: string, key: string): void {
    const asked = this.#asked.get(key);
    if (asked === undefined) return;
    this.#count(account, 1);
    this.#lookup(asked.hostname, asked.options, (error, addresses) => {
      this.#count(account, -1);
      this.#asked.delete(key);
      for (const callback of asked.callbacks) callback(error, addresses);
      this.#begin();
    });
  }

  #count(account: string, by: number): void {
    const held = (this.#byAccount.get(account) ?? 0) + by;
    this.#underWay += by;
    if (held === 0) this.#byAccount.delete(account);
    else this.#byAccount.set(account, held);
  }
}

function tooMany(hostname: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${hostname} is not looked up: too many names of the organization wait for an answer of DNS`), {
    code: 'EAI_AGAIN',
    syscall: 'getaddrinfo',
    hostname,
  });
}
