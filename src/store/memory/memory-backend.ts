import { isContainer } from '../../core/exact-number.ts';
import type { Kind, ObjectOf } from '../../resources/kinds.ts';
import type { Mutation, ObjectBackend, ObjectReference, Refusal } from '../objects/backend.ts';
import { type Change, ChangeSubscriber } from '../objects/change-subscriber.ts';
import { keyOfMember, listed, memberOf, requiredNamespace } from '../objects/member.ts';
import {
  expired,
  newStoreId,
  type Position,
  parseVersion,
  readContinueToken,
  requireInLog,
  toVersion,
  writeContinueToken,
} from '../objects/store-version.ts';
import type { Key, ListQuery, Page, Version, WatchEvent } from '../store.ts';

const pageLimit = 500;

/** Objects in maps of this process. Everything that goes in or out is a copy. */
export class MemoryBackend implements ObjectBackend {
  readonly #marker = newStoreId();
  readonly #logLength: number;
  readonly #objects = new Map<Kind, Map<string, ObjectOf<Kind>>>();
  readonly #log: Change[] = [];
  readonly #subscribers = new Set<{ offer(change: Change): void }>();
  #revision = 0;

  constructor(logLength: number) {
    this.#logLength = logLength;
  }

  async read<K extends Kind>(kind: K, key: Key): Promise<ObjectOf<K> | null> {
    const found = this.#of(kind).get(memberOf(key));
    return found === undefined ? null : copied(found);
  }

  async commit({ kind, key, before, object, change }: Mutation): Promise<{ version: Version } | { refused: Refusal }> {
    const objects = this.#of(kind);
    const member = memberOf(key);
    if (objects.get(member)?.metadata.resourceVersion !== before?.metadata.resourceVersion) return { refused: 'conflict' };
    const namespace = change === 'added' ? requiredNamespace(kind, key) : null;
    if (namespace !== null) {
      const found = this.#of('Namespace').get(memberOf({ name: namespace }));
      if (found === undefined) return { refused: 'namespaceMissing' };
      if (found.metadata.deletionTimestamp !== undefined) return { refused: 'namespaceTerminating' };
    }
    const version = toVersion({ revision: ++this.#revision, marker: this.#marker });
    const stored = copied(object);
    stored.metadata.resourceVersion = version;
    if (change === 'deleted') objects.delete(member);
    else objects.set(member, stored);
    this.#record({ revision: this.#revision, kind, type: change, namespace: key.namespace, object: () => listed(stored) });
    return { version };
  }

  async list<K extends Kind>(kind: K, query: ListQuery): Promise<Page<K>> {
    const token = query.continueToken === undefined ? null : readContinueToken(query.continueToken);
    const version = token?.version ?? this.#position();
    requireInLog(version, this.#position(), 'the continue token');
    const prefix = query.namespace === undefined ? '' : `${query.namespace}/`;
    const members = [...this.#of(kind).keys()]
      .filter((member) => member.startsWith(prefix) && (token === null || member > token.after))
      .sort();
    const limit = query.limit ?? pageLimit;
    const page = members.slice(0, limit);
    const last = page.at(-1);
    return {
      items: page.flatMap((member) => copied(this.#of(kind).get(member)) ?? []).map((object) => listed(object)),
      version: toVersion(version),
      ...(members.length > limit && last !== undefined ? { continueToken: writeContinueToken({ version, after: last }) } : {}),
    };
  }

  async *watch<K extends Kind>(kind: K, from: Version, signal: AbortSignal, namespace: string | undefined): AsyncGenerator<WatchEvent<K>> {
    const start = parseVersion(from);
    if (start === null) throw expired(`the version ${from}`);
    requireInLog(start, this.#position(), 'the version');
    const subscriber = new ChangeSubscriber(kind, namespace, start);
    for (const change of this.#log) subscriber.offer(change);
    this.#subscribers.add(subscriber);
    try {
      for await (const event of subscriber.events(signal)) yield copied(event);
    } finally {
      this.#subscribers.delete(subscriber);
    }
  }

  async dependents(uid: string): Promise<ObjectReference[]> {
    return [...this.#objects].flatMap(([kind, objects]) =>
      [...objects]
        .filter(([, object]) => object.metadata.ownerReferences?.some((owner) => owner.uid === uid) === true)
        .map(([member]) => ({ kind, key: keyOfMember(member) })),
    );
  }

  #of<K extends Kind>(kind: K): Map<string, ObjectOf<K>> {
    let objects = this.#objects.get(kind);
    if (objects === undefined) {
      objects = new Map();
      this.#objects.set(kind, objects);
    }
    return objects as unknown as Map<string, ObjectOf<K>>;
  }

  #record(change: Change): void {
    this.#log.push(change);
    if (this.#log.length > this.#logLength) this.#log.shift();
    for (const subscriber of this.#subscribers) subscriber.offer(change);
  }

  #position(): Position {
    return { revision: this.#revision, marker: this.#marker, oldest: this.#log[0]?.revision ?? this.#revision + 1 };
  }
}

/** Nothing but JSON values, of which numbers that keep their text never change. */
function copied<T>(value: T): T {
  if (Array.isArray(value)) return value.map(copied) as T;
  if (!isContainer(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, copied(member)])) as T;
}
