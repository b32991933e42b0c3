import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from '@jest/globals';
import type { PosthornError } from '../../src/core/errors.ts';
import type { Kind, ObjectOf } from '../../src/resources/kinds.ts';
import type { ApplyObject, CompleteStore, Key, Version, WatchEvent } from '../../src/store/store.ts';

/** A store that the table of cases runs on. */
export interface StoreUnderTest {
  store: CompleteStore;
  /** A version of a list of this store that a watch can no longer resume from. */
  expiredVersion(): Promise<Version>;
  close(): Promise<void>;
}

const settleMs = 30_000;

/** What the cases work with: the store, a namespace of each case's own, and objects in it. */
export class StoreContext {
  #subject: StoreUnderTest | null = null;
  #namespace = '';

  get subject(): StoreUnderTest {
    if (this.#subject === null) throw new Error('the store has not been made');
    return this.#subject;
  }

  get store(): CompleteStore {
    return this.subject.store;
  }

  get namespace(): string {
    return this.#namespace;
  }

  use(subject: StoreUnderTest): void {
    this.#subject = subject;
  }

  async makeNamespace(): Promise<void> {
    this.#namespace = `t-${randomBytes(5).toString('hex')}`;
    await this.store.create({ kind: 'Namespace', metadata: { name: this.#namespace } }, { manager: 'test' });
  }

  key(name: string): Key {
    return { namespace: this.#namespace, name };
  }

  route(name: string, spec: Record<string, unknown> = {}, metadata: Partial<ApplyObject['metadata']> = {}): ApplyObject<'Route'> {
    return {
      kind: 'Route',
      metadata: { name, namespace: this.#namespace, ...metadata },
      spec: { sourceRef: { name: 'in' }, destinationRefs: [{ name: 'out' }], ...spec },
    };
  }

  destination(name: string, spec: Record<string, unknown> = {}): ApplyObject<'Destination'> {
    return {
      kind: 'Destination',
      metadata: { name, namespace: this.#namespace },
      spec: { type: 'http', http: { url: 'https://example.com/' }, ...spec },
    };
  }

  secret(name: string, data: Record<string, string>): ApplyObject<'Secret'> {
    return { kind: 'Secret', metadata: { name, namespace: this.#namespace }, type: 'Opaque', data };
  }

  /** Starts a watch of the case's namespace; `next` waits for the next event but bookmarks. */
  watching<K extends Kind>(kind: K, from: Version) {
    const stop = new AbortController();
    const events = this.store.watch(kind, from, stop.signal, { namespace: this.#namespace })[Symbol.asyncIterator]();
    const next = async (): Promise<{ type: 'added' | 'modified' | 'deleted'; object: ObjectOf<K> }> => {
      for (;;) {
        const result: IteratorResult<WatchEvent<K>> = await events.next();
        if (result.done === true) throw new Error('the watch ended');
        if (result.value.type !== 'bookmark') return result.value;
      }
    };
    return { next, stop: () => stop.abort() };
  }
}

export function condition(type: string, reason: string): Record<string, unknown> {
  return { type, status: 'True', reason, message: '', lastTransitionTime: '2026-01-01T00:00:00Z' };
}

export function names(objects: readonly ObjectOf<Kind>[]): string[] {
  return objects.map((object) => object.metadata.name);
}

export async function expectCode(attempt: Promise<unknown>, code: PosthornError['code']): Promise<PosthornError> {
  try {
    await attempt;
  } catch (error) {
    expect(error).toMatchObject({ name: 'PosthornError', code });
    return error as PosthornError;
  }
  throw new Error(`expected ${code}, but it succeeded`);
}

export function details(error: PosthornError): string[] {
  return Object.keys(error.details ?? {});
}

export async function eventually(check: () => Promise<unknown>): Promise<void> {
  const deadline = AbortSignal.timeout(settleMs);
  for (;;) {
    try {
      await check();
      return;
    } catch (error) {
      if (deadline.aborted) throw error;
    }
    await sleep(100);
  }
}
