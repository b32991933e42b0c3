import { ownProvider } from '../../core/providers/providers.ts';
import type { RecordByKind, RecordKind } from '../../core/records.ts';

/** One entry of an index: a field of a hash (`field` → record id), or a member of a set. */
export interface IndexEntry {
  type: 'hash' | 'set';
  /** Name of the index, as in `registry.ts`. */
  index: string;
  /** Field of the hash, or member of the set. */
  field: string;
  /** The change key that readers who looked the entry up depend on. */
  changeKey: string;
  /** No record of another organization takes the field while this one exists. */
  isClaimed?: true;
}

/** A record with its kind, as a discriminated union. */
export type KindAndRecord = { [K in RecordKind]: { kind: K; record: RecordByKind[K] } }[RecordKind];

/** The index entries that a record has while it is published. Records of other kinds are found by their id alone. */
export function indexEntries({ kind, record }: KindAndRecord): IndexEntry[] {
  switch (kind) {
    case 'organization':
      return [
        // A deleted one cannot be found by its name, which another one may have.
        ...(record.retained === undefined ? [hashEntry('org-slug', record.slug)] : []),
        ...(record.archive === undefined
          ? []
          : [{ type: 'set', index: 'archives', field: record.id, changeKey: 'archives' } satisfies IndexEntry]),
      ];
    case 'source': {
      const index = `own-sources-of:${record.org}`;
      return [
        hashEntry('source-slug', `${record.orgSlug}/${record.slug}`),
        ...(record.provider === ownProvider && record.enabled
          ? [{ type: 'set', index, field: record.id, changeKey: index } satisfies IndexEntry]
          : []),
      ];
    }
    case 'route': {
      const index = `routes-of:${record.sourceId}`;
      return [{ type: 'set', index, field: record.id, changeKey: index }];
    }
    case 'notificationChannel': {
      const index = `channels-of:${record.org}`;
      return [{ type: 'set', index, field: record.id, changeKey: index }];
    }
    case 'eventType':
      return [hashEntry('event-type', `${record.org}/${record.name}`)];
    case 'apiKey':
      // The hash of a key is no secret: who declares that of another organization's key must not get the requests that are sent with it.
      return [{ ...hashEntry('api-key', record.sha256), isClaimed: true }];
    default:
      return [];
  }
}

function hashEntry(index: string, field: string): IndexEntry {
  return { type: 'hash', index, field, changeKey: `${index}:${field}` };
}

export interface IndexOperation {
  operation: 'hset' | 'hclaim' | 'hdel' | 'sadd' | 'srem';
  entry: IndexEntry;
}

/** The change from the entries of the stored record to those of the new one. */
export function indexOperations(stored: readonly IndexEntry[], wanted: readonly IndexEntry[]): IndexOperation[] {
  const gone = stored.filter((entry) => !wanted.some((other) => isSame(entry, other)));
  const added = wanted.filter((entry) => !stored.some((other) => isSame(entry, other)));
  return [
    ...gone.map((entry) => ({ operation: entry.type === 'hash' ? ('hdel' as const) : ('srem' as const), entry })),
    ...added.map((entry) => ({ operation: addingOperation(entry), entry })),
  ];
}

function addingOperation({ type, isClaimed }: IndexEntry): 'hset' | 'hclaim' | 'sadd' {
  if (type === 'set') return 'sadd';
  return isClaimed === true ? 'hclaim' : 'hset';
}

function isSame(one: IndexEntry, other: IndexEntry): boolean {
  return one.index === other.index && one.field === other.field;
}
