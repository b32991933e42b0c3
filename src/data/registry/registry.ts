import type { OwnedRecordKind, RecordByKind, RecordKind } from '../../core/records.ts';

/**
 * Published records in Redis. All keys share the slot `{cfg}`:
 *
 * - `<prefix>{cfg}:marker` random value written when the store was made; another value means data loss
 * - `<prefix>{cfg}:complete` there once a leader has published everything into this store: only then is what is absent unknown
 * - `<prefix>{cfg}:layout` in which form everything in Redis is (`store-layout.ts`); absent: never migrated
 * - `<prefix>{cfg}:installation` whose it is (`store-installation.ts`)
 * - `<prefix>{cfg}:epoch` leader epoch, integer; publishing under an older one is refused
 * - `<prefix>{cfg}:seq` dense number of the last change
 * - `<prefix>{cfg}:changes` stream, entry id `<seq>-0`, field `k` = `<record kind>:<id>`, first of all also `m` the marker; trimmed by length
 * - `<prefix>{cfg}:rec:<record kind>` hash: id → record JSON (canonical key order)
 * - `<prefix>{cfg}:owners` hash: id of a record → id of the organization that published it first. It outlives the record: the events, history and
 *   references that name the id stay that organization's.
 * - `<prefix>{cfg}:ix:<name>` index hashes and sets: `source-slug` (`orgSlug/sourceSlug` → source id),
 *   `api-key` (sha256 → key id), `routes-of:<source id>` (set of route ids), `channels-of:<org id>` (set of channel ids),
 *   `own-sources-of:<org id>` (set of ids of the enabled sources for Posthorn's own events),
 *   `org-slug` (slug → org id), `event-type` (`org/name` → event type id)
 */
export interface RegistryPublisher {
  /** Mints the next leader epoch. */
  mintEpoch(): Promise<number>;
  /**
   * Writes the record and its index entries and appends one change, unless the stored record is equal.
   * Returns whether anything changed. Throws CONFLICT with `details.epoch` when `epoch` is not the newest (a fenced
   * ex-leader), with `details.owner` when the id belongs to another organization, and per `isTakenName` when a lookup name of the record does.
   */
  publish<K extends RecordKind>(epoch: number, kind: K, record: RecordByKind[K]): Promise<boolean>;
  /**
   * Removes the record and its index entries; returns whether it was there. `org`: only a record of that organization. Fenced like `publish`. The id
   * stays its organization's.
   */
  retract(epoch: number, kind: RecordKind, id: string, org?: string): Promise<boolean>;
  /** Stores the owner of an id without a record here. Throws CONFLICT as `publish` does. */
  claim(epoch: number, id: string, org: string): Promise<void>;
  /** Calls back with every id that belongs to an organization. */
  eachOwner(found: (id: string, org: string) => void): Promise<void>;
  /** Ids of all published records of the kind, for the sweep of what is gone. */
  ids(kind: RecordKind): Promise<string[]>;
  get<K extends RecordKind>(kind: K, id: string): Promise<RecordByKind[K] | null>;
  /** The store marker, made when missing. */
  marker(): Promise<string>;
  /** Declares that everything is published: from now on what is absent is unknown. */
  markComplete(): Promise<void>;
}

/** Kinds that a request names by an address or a credential of its own, so that no organization is known before. */
export type RootRecordKind = 'organization' | 'source' | 'apiKey';

/** Reads of records through a bounded LRU that the change stream keeps honest. */
export interface RegistryReader {
  /** A record whose id did not come from another record or from a queue: an organization, a source by its address, a key by its hash. */
  get<K extends RootRecordKind>(kind: K, id: string): Promise<RecordByKind[K] | null>;
  /** The organization's record with this id; null when there is none, or when it is another organization's. */
  getOf<K extends OwnedRecordKind>(org: string, kind: K, id: string): Promise<RecordByKind[K] | null>;
  /**
   * The record with this id, whose organization the caller takes from the record: for what serves all organizations and follows changes, which name
   * ids alone. Callers that have the id from another record or from a queue use `getOf`.
   */
  getOfAny<K extends OwnedRecordKind>(kind: K, id: string): Promise<RecordByKind[K] | null>;
  /** Id of the source behind `/ingest/{orgSlug}/{sourceSlug}`; null when unknown. */
  sourceIdBySlug(orgSlug: string, sourceSlug: string): Promise<string | null>;
  /** Ids of the routes of a source, unordered. */
  routeIdsOfSource(sourceId: string): Promise<string[]>;
  /** Ids of the notification channels of an organization, unordered. */
  channelIdsOfOrganization(org: string): Promise<string[]>;
  /** Ids of the enabled sources of an organization that receive Posthorn's own events, unordered. */
  ownSourceIdsOfOrganization(org: string): Promise<string[]>;
  /** Ids of the organizations that keep what has finished in an archive, unordered. */
  archivingOrganizations(): Promise<string[]>;
  /** By the name that events are sent by. */
  eventTypeIdByName(org: string, name: string): Promise<string | null>;
  apiKeyIdByHash(sha256: string): Promise<string | null>;
  organizationIdBySlug(slug: string): Promise<string | null>;
  /** Whose the id of a record is or was: also of one that is gone. Null: no organization has published it. */
  ownerOf(id: string): Promise<string | null>;
  /** Returns the slugs of all organizations, in order. */
  organizationSlugs(): Promise<string[]>;
  /**
   * A value derived from records, kept in the LRU: `make` runs on a miss, and `dependsOn` (change keys such as
   * `route:rte_x` or `routes-of:src_x`) lists what invalidates the value.
   */
  derive<T>(key: string, make: () => Promise<{ value: T; dependsOn: string[] }>): Promise<T>;
  /** Called after every applied change key, and with `*` after a flush. */
  onChange(listener: (changeKey: string) => void): () => void;
}
