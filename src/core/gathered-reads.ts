import { Semaphore } from './semaphore.ts';

/** Keys requested meanwhile are read together with the next call. */
const callsAtOnce = 2;

interface Asked<V> {
  key: string;
  resolve(value: V): void;
  reject(error: unknown): void;
}

/** Reads values one key at a time. Keys of one group that are requested at about the same time share a call. */
export class GatheredReads<V> {
  readonly #readAll: (group: string, keys: string[]) => Promise<readonly V[]>;
  readonly #maxKeys: number;
  readonly #calls = new Semaphore(callsAtOnce);
  readonly #asked = new Map<string, Asked<V>[]>();

  /** `readAll` resolves to the values of at most `maxKeys` keys, in their order. */
  constructor(readAll: (group: string, keys: string[]) => Promise<readonly V[]>, maxKeys: number) {
    this.#readAll = readAll;
    this.#maxKeys = maxKeys;
  }

  /** Resolves to a value that is read after this call begins. Rejects as `readAll` does. */
  read(group: string, key: string): Promise<V> {
    return new Promise((resolve, reject) => {
      const asked = this.#asked.get(group);
      if (asked !== undefined) return void asked.push({ key, resolve, reject });
      this.#asked.set(group, [{ key, resolve, reject }]);
      setImmediate(() => void this.#calls.run(1, () => this.#readSome(group)));
    });
  }

  /** Rejects nothing: each caller gets the error. */
  async #readSome(group: string): Promise<void> {
    const asked = this.#asked.get(group) ?? [];
    const some = asked.splice(0, this.#maxKeys);
    if (asked.length === 0) this.#asked.delete(group);
    else void this.#calls.run(1, () => this.#readSome(group));
    try {
      const values = await this.#readAll(
        group,
        some.map(({ key }) => key),
      );
      for (const [i, { resolve }] of some.entries()) resolve(values[i] as V);
    } catch (error) {
      for (const { reject } of some) reject(error);
    }
  }
}
