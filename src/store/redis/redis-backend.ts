import { z } from 'zod';
import type { Keyring } from '../../core/sealing.ts';
import type { RedisClient } from '../../redis/connection.ts';
import type { ReplicatedWrites } from '../../redis/replicated-writes.ts';
import { namedArgument, Script } from '../../redis/script.ts';
import type { Kind, ObjectOf } from '../../resources/kinds.ts';
import type { Mutation, ObjectBackend, ObjectReference, Refusal } from '../objects/backend.ts';
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
import { ChangeFollower } from './change-follower.ts';
import { ObjectCodec } from './codec.ts';
import { reachable } from './reachable.ts';
import { StoreKeys, storeFields } from './store-keys.ts';

export interface RedisBackendOptions {
  redis: RedisClient;
  /** A new connection for blocking reads; it is closed when nobody watches any more. */
  openBlocking: () => RedisClient;
  /** For changes; absent: they go by `redis`, and no replica is waited for. */
  writes?: ReplicatedWrites;
  keyring: Keyring;
  prefix: string;
  /** How many changes a watch can look back. */
  logLength: number;
  /** How long one blocking read may last, in milliseconds. */
  blockMs: number;
}

const pageLimit = 500;
const commitScript = new Script(new URL('./scripts/commit.lua', import.meta.url), storeFields);
const pageScript = new Script(new URL('./scripts/page.lua', import.meta.url));

const commitReply = z.union([
  z.tuple([z.literal('ok'), z.string()]),
  z.tuple([z.enum(['conflict', 'namespaceMissing', 'namespaceTerminating'])]),
]);
const pageReply = z.tuple([z.string(), z.number(), z.number(), z.array(z.string()), z.array(z.string().nullable())]);

/** Objects in Redis: a hash per kind, one stream of all changes. */
export class RedisBackend implements ObjectBackend {
  readonly #redis: RedisClient;
  readonly #writes: ReplicatedWrites | undefined;
  readonly #keys: StoreKeys;
  readonly #codec: ObjectCodec;
  readonly #logLength: number;
  readonly #follower: ChangeFollower;

  constructor(options: RedisBackendOptions) {
    this.#redis = options.redis;
    this.#writes = options.writes;
    this.#keys = new StoreKeys(options.prefix);
    this.#codec = new ObjectCodec(options.keyring);
    this.#logLength = options.logLength;
    this.#follower = new ChangeFollower({
      redis: options.redis,
      openBlocking: options.openBlocking,
      changesKey: this.#keys.changes,
      position: () => this.#position(),
      codec: this.#codec,
      blockMs: options.blockMs,
    });
  }

  async read<K extends Kind>(kind: K, key: Key): Promise<ObjectOf<K> | null> {
    const stored = await reachable(this.#redis.hget(this.#keys.objects(kind), memberOf(key)));
    return stored === null ? null : this.#codec.decode(kind, stored);
  }

  async commit({ kind, key, before, object, change }: Mutation): Promise<{ version: Version } | { refused: Refusal }> {
    const member = memberOf(key);
    const namespace = change === 'added' ? requiredNamespace(kind, key) : null;
    const ownersOf = ({ metadata }: ObjectOf<Kind>): string[] =>
      (metadata.ownerReferences ?? []).map(({ uid }) => `${uid}|${kind}|${member}`);
    const owners = change === 'deleted' ? [] : ownersOf(object);
    const gone = before === null ? [] : ownersOf(before).filter((each) => !owners.includes(each));
    const keys = [
      this.#keys.meta,
      this.#keys.changes,
      this.#keys.objects(kind),
      this.#keys.names(kind),
      this.#keys.objects('Namespace'),
      this.#keys.dependents,
    ];
    const written = namedArgument({
      marker: newStoreId(),
      member,
      version: before?.metadata.resourceVersion ?? '',
      type: change,
      kind,
      namespace: key.namespace ?? '',
      ownerNamespace: namespace === null ? null : memberOf({ name: namespace }),
      logLength: this.#logLength,
      removed: gone,
      added: owners,
    });
    const args = [written, change === 'deleted' ? '' : this.#codec.encode(object), this.#codec.encodeListed(object)];
    const writing = this.#writes === undefined ? commitScript.run(this.#redis, keys, args) : this.#writes.run(commitScript, keys, args);
    const reply = await reachable(writing);
    const parsed = commitReply.parse(reply);
    return parsed[0] === 'ok' ? { version: parsed[1] as Version } : { refused: parsed[0] };
  }

  async list<K extends Kind>(kind: K, query: ListQuery): Promise<Page<K>> {
    const token = query.continueToken === undefined ? null : readContinueToken(query.continueToken);
    const limit = query.limit ?? pageLimit;
    const { namespace } = query;
    const lowest = token !== null ? `(${token.after}` : namespace === undefined ? '-' : `[${namespace}/`;
    // '0' is the character after '/'.
    const highest = namespace === undefined ? '+' : `(${namespace}0`;
    const { position, members, values } = await this.#page(kind, lowest, highest, limit + 1);
    if (token !== null) requireInLog(token.version, position, 'the continue token');
    const version = token?.version ?? position;
    const items = values.slice(0, limit).flatMap((value) => (value === null ? [] : [this.#decodeItem(kind, value)]));
    const last = members[limit - 1];
    return {
      items,
      version: toVersion(version),
      ...(members.length > limit && last !== undefined ? { continueToken: writeContinueToken({ version, after: last }) } : {}),
    };
  }

  async *watch<K extends Kind>(kind: K, from: Version, signal: AbortSignal, namespace: string | undefined): AsyncGenerator<WatchEvent<K>> {
    const start = parseVersion(from);
    if (start === null) throw expired(`the version ${from}`);
    yield* this.#follower.follow(kind, namespace, start, signal);
  }

  async dependents(uid: string): Promise<ObjectReference[]> {
    const found = await reachable(this.#redis.zrangebylex(this.#keys.dependents, `[${uid}|`, `(${uid}}`));
    return found.map((text) => {
      const [, kind, member] = text.split('|');
      return { kind: kind as Kind, key: keyOfMember(member ?? '') };
    });
  }

  /** Ends every watch. */
  close(): void {
    this.#follower.close();
  }

  async #position(): Promise<Position> {
    return (await this.#page('Namespace', '-', '+', 0)).position;
  }

  async #page(kind: Kind, lowest: string, highest: string, limit: number) {
    const reply = await reachable(
      pageScript.run(
        this.#redis,
        [this.#keys.meta, this.#keys.changes, this.#keys.objects(kind), this.#keys.names(kind)],
        [namedArgument({ marker: newStoreId(), lowest, highest, maxObjects: limit })],
      ),
    );
    const [marker, revision, oldest, members, values] = pageReply.parse(reply);
    return { position: { marker, revision, oldest: oldest === -1 ? revision + 1 : oldest } satisfies Position, members, values };
  }

  #decodeItem<K extends Kind>(kind: K, stored: string): ObjectOf<K> {
    const end = stored.indexOf('\n');
    return listed(this.#codec.decodeListed(kind, stored.slice(end + 1), stored.slice(0, end)));
  }
}
