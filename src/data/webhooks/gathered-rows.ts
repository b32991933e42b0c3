import { Semaphore } from '../../core/semaphore.ts';
import { webhookRows } from './webhook-changes.ts';
import type { KindOfWebhooks } from './webhook-kinds.ts';
import type { Row } from './webhook-rows.ts';
import type { WebhookScripts } from './webhook-scripts.ts';

const mostPerCall = 50;
/** What is asked for meanwhile is read together with the next call. */
const callsAtOnce = 2;

interface Asked<T> {
  id: string;
  resolve(row: Row<T> | null): void;
  reject(error: unknown): void;
}

/** Reads objects of one kind by id, one at a time; those that are asked for at about the same time share a script call. */
export class GatheredRows<T> {
  readonly #scripts: WebhookScripts;
  readonly #kind: KindOfWebhooks<T>;
  readonly #calls = new Semaphore(callsAtOnce);
  readonly #asked = new Map<string, Asked<T>[]>();

  constructor(scripts: WebhookScripts, kind: KindOfWebhooks<T>) {
    this.#scripts = scripts;
    this.#kind = kind;
  }

  /** Null when it is not there. Rejects with UNAVAILABLE when Redis does not answer. */
  row(org: string, id: string): Promise<Row<T> | null> {
    return new Promise((resolve, reject) => {
      const asked = this.#asked.get(org);
      if (asked !== undefined) return void asked.push({ id, resolve, reject });
      this.#asked.set(org, [{ id, resolve, reject }]);
      setImmediate(() => void this.#calls.run(1, () => this.#read(org)));
    });
  }

  /** Rejects nothing: each that asked is told. */
  async #read(org: string): Promise<void> {
    const asked = this.#asked.get(org) ?? [];
    const some = asked.splice(0, mostPerCall);
    if (asked.length === 0) this.#asked.delete(org);
    else void this.#calls.run(1, () => this.#read(org));
    try {
      const rows = await webhookRows(
        this.#scripts,
        this.#kind,
        org,
        some.map(({ id }) => id),
      );
      for (const [i, { resolve }] of some.entries()) resolve(rows[i] ?? null);
    } catch (error) {
      for (const { reject } of some) reject(error);
    }
  }
}
