import { PosthornError } from '../../src/core/errors.ts';
import { isRecord } from '../../src/resources/field-tree.ts';
import type { Kind, ObjectOf } from '../../src/resources/kinds.ts';
import type { CompleteStore, Key } from '../../src/store/store.ts';

/** At which of its writes a process dies: before that is made, or before its answer comes. Or as soon as so many writes have changed something. */
export type CrashPoint = { write: number; when: 'before' | 'after' } | { changes: number };

/** The result of a write, and whether it has changed anything. */
interface Written<T> {
  answer: T;
  isChange: boolean;
}

/** What goes wrong with one call: it does not get there, or its answer does not come back. */
export type CallFault = 'before' | 'after' | null;

export interface CrashingProcessOptions {
  /** Null: it lives. */
  death: CrashPoint | null;
  onChange: () => void;
  /** Called for each call. */
  trouble: () => CallFault;
}

/** Requests of one process to the servers around it. When it is dead nothing is sent, and no answer comes any more. */
export class CrashingProcess {
  readonly #options: CrashingProcessOptions;
  readonly #died = new AbortController();
  #writes = 0;
  #changes = 0;
  #underWay = 0;

  constructor(options: CrashingProcessOptions) {
    this.#options = options;
  }

  get died(): AbortSignal {
    return this.#died.signal;
  }

  /** How many writes have been begun. */
  get writes(): number {
    return this.#writes;
  }

  /** Whether it waits for an answer. */
  get isBusy(): boolean {
    return this.#underWay > 0;
  }

  async read<T>(call: () => Promise<T>): Promise<T> {
    this.#requireLife();
    const trouble = this.#options.trouble();
    if (trouble === 'before') throw new PosthornError('UNAVAILABLE', 'the call did not get there');
    this.#underWay++;
    try {
      const answer = await call();
      if (trouble === 'after') throw new PosthornError('UNAVAILABLE', 'the answer did not come back');
      return answer;
    } finally {
      this.#underWay--;
      this.#requireLife();
    }
  }

  async write<T>(call: () => Promise<Written<T>>): Promise<T> {
    this.#requireLife();
    const number = ++this.#writes;
    const { death } = this.#options;
    const when = death !== null && 'write' in death && death.write === number ? death.when : null;
    if (when === 'before') this.#died.abort();
    const { answer } = await this.read(async () => {
      try {
        const written = await call();
        if (written.isChange) this.#changed();
        return written;
      } finally {
        if (when === 'after') this.#died.abort();
      }
    });
    return answer;
  }

  #changed(): void {
    const { death, onChange } = this.#options;
    this.#changes++;
    onChange();
    if (death !== null && 'changes' in death && death.changes === this.#changes) this.#died.abort();
  }

  #requireLife(): void {
    if (this.#died.signal.aborted) throw new PosthornError('UNAVAILABLE', 'this process is dead');
  }
}

/** What a server is reached by: one process, or whichever lives now. */
export type ProcessConnection = Pick<CrashingProcess, 'read' | 'write' | 'died'>;

/** The resource store as the process reaches it. */
export function crashingStore(store: CompleteStore, process: ProcessConnection): CompleteStore {
  const writing = async <K extends Kind>(kind: K, key: Key, call: () => Promise<ObjectOf<K>>): Promise<ObjectOf<K>> =>
    process.write(async () => {
      const before = await (kind === 'Secret' ? store.getSecret(key) : store.get(kind, key)).catch(() => null);
      const answer = await call();
      return { answer, isChange: before?.metadata.resourceVersion !== answer.metadata.resourceVersion };
    });
  return {
    get: (kind, key) => process.read(() => store.get(kind, key)),
    getMetadata: (kind, key) => process.read(() => store.getMetadata(kind, key)),
    getSecret: (key) => process.read(() => store.getSecret(key)),
    list: (kind, query) => process.read(() => store.list(kind, query)),
    watch: (kind, from, signal, query) => store.watch(kind, from, AbortSignal.any([signal, process.died]), query),
    create: (object, options) => writing(object.kind, keyOf(object.metadata), () => store.create(object, options)),
    apply: (object, options) => writing(object.kind, keyOf(object.metadata), () => store.apply(object, options)),
    applyStatus: (kind, key, status, options) => writing(kind, key, () => store.applyStatus(kind, key, status, options)),
    delete: (kind, key, precondition) =>
      process.write(async () => ({ answer: await store.delete(kind, key, precondition), isChange: true })),
  };
}

function keyOf({ name, namespace }: Key): Key {
  return namespace === undefined ? { name } : { name, namespace };
}

/** Which methods write, and whether the answer of one reports a change. */
export interface Writes {
  isWrite(method: string): boolean;
  isChange(method: string, answer: unknown): boolean;
}

export const readsOnly: Writes = { isWrite: () => false, isChange: () => false };

export const registryWrites: Writes = {
  isWrite: (method) => ['mintEpoch', 'publish', 'retract', 'markComplete'].includes(method),
  isChange: (method, answer) => (method === 'publish' || method === 'retract') && answer === true,
};

/** Writes of a Redis client, as far as the lock of an organization and its write-ahead log use it. */
export const lockWrites: Writes = { isWrite: (method) => ['set', 'hset', 'hdel', 'zadd', 'call'].includes(method), isChange: () => false };

/** The result of a purge is not reported. */
export const purgerWrites: Writes = { isWrite: () => true, isChange: () => false };

/** `revisions`: those that were seen last, by id; outlives the process. */
export function webhookWrites(revisions: Map<string, number>): Writes {
  return {
    isWrite: (method) => /^(create|update|upsert|delete|admit|note|retire)/.test(method),
    isChange: (method, answer) => {
      if (isRecord(answer) && typeof answer['id'] === 'string' && typeof answer['revision'] === 'number') {
        const isNew = method.startsWith('create') || revisions.get(answer['id']) !== answer['revision'];
        revisions.set(answer['id'], answer['revision']);
        return isNew;
      }
      // An event type is deleted again and again.
      return method.startsWith('delete') && method !== 'deleteEventType';
    },
  };
}

/** An object whose methods all answer by promises, as the process reaches it. */
export function mortal<T extends object>(target: T, process: ProcessConnection, { isWrite, isChange }: Writes): T {
  return new Proxy(target, {
    get: (object, name) => {
      const member: unknown = Reflect.get(object, name, object);
      if (typeof member !== 'function' || typeof name !== 'string') return member;
      const call = async (given: unknown[]): Promise<unknown> => await Reflect.apply(member, object, given);
      return (...given: unknown[]) => {
        if (!isWrite(name)) return process.read(() => call(given));
        return process.write(async () => {
          const answer = await call(given);
          return { answer, isChange: isChange(name, answer) };
        });
      };
    },
  });
}
