import type { RecordKind } from '../core/records.ts';
import { isSealed, type Keyring } from '../core/sealing.ts';
import { recordSealingContext, type SealedRecordField } from '../core/sealing-contexts.ts';
import type { RedisClient } from '../redis/connection.ts';
import { rewriteHash } from '../redis/rewrite-hash.ts';
import { registryKeys } from './registry-keys.ts';

const kinds = Object.keys({
  organization: true,
  source: true,
  destination: true,
  route: true,
  transform: true,
  payloadSchema: true,
  notificationChannel: true,
  cronJob: true,
  apiKey: true,
} satisfies Record<RecordKind, true>) as RecordKind[];

/**
 * Seals the secrets of published records under the newest key. Nobody need be told: readers open the old envelopes, too, for as long as
 * they have the old key. `report` gets what does not open. Answers how many records changed.
 */
export async function resealRecords(options: {
  redis: RedisClient;
  prefix: string;
  keyring: Keyring;
  report: (complaint: string) => void;
}): Promise<number> {
  const { redis, prefix, keyring, report } = options;
  const keys = registryKeys(prefix);
  let changed = 0;
  for (const kind of kinds) {
    changed += await rewriteHash(redis, keys.records(kind), (id, json) => {
      if (!json.includes('"sealed.')) return null;
      const record = JSON.parse(json);
      const reseal = (envelope: string, field: string): string => {
        try {
          // The name of the field is one of those that records are sealed under.
          return keyring.reseal(envelope, recordSealingContext(record.org, kind, id, field as SealedRecordField));
        } catch (error) {
          report(`${kind} ${id}: ${field} does not open: ${error instanceof Error ? error.message : error}`);
          return envelope;
        }
      };
      const resealed = JSON.stringify(withEnvelopes(record, '', reseal));
      return resealed === json ? null : resealed;
    });
  }
  return changed;
}

/** Members of a list stand under the name of the list. */
function withEnvelopes(value: unknown, field: string, map: (envelope: string, field: string) => string): unknown {
  if (typeof value === 'string') return isSealed(value) ? map(value, field) : value;
  if (Array.isArray(value)) return value.map((item) => withEnvelopes(item, field, map));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, withEnvelopes(member, name, map)]));
}
