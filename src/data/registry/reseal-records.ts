import { isContainer } from '../../core/exact-number.ts';
import { parseJson } from '../../core/read-json.ts';
import { recordKinds } from '../../core/records.ts';
import { isSealed, type Keyring } from '../../core/sealing.ts';
import { recordSealingContext, type SealedRecordField } from '../../core/sealing-contexts.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { rewriteHash } from '../../redis/rewrite-hash.ts';
import { registryKeys } from './registry-keys.ts';

/** The field of a sealed value is known only by its position in the record, so each is tried: an envelope opens under its own alone. */
const sealedFields = Object.keys({
  signingSecrets: true,
  verifyToken: true,
  token: true,
  password: true,
  key: true,
  headerValue: true,
  webhookUrl: true,
  routingKey: true,
  clientCertificate: true,
  clientKey: true,
  secretAccessKey: true,
  serviceAccountKey: true,
  accountKey: true,
  value: true,
} satisfies Record<SealedRecordField, true>) as SealedRecordField[];

/**
 * Seals the secrets of published records under the newest key. Readers need no notice: they open the old envelopes, too, for as long as
 * they have the old key, and read all records again when they lose it. `report` gets what does not open. Returns how many records changed.
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
  for (const kind of recordKinds) {
    changed += await rewriteHash(redis, keys.records(kind), (id, json) => {
      if (!json.includes('"sealed.')) return null;
      const record = parseJson(json) as { org: string };
      const reseal = (envelope: string, place: string): string => {
        let complaint: unknown;
        for (const field of sealedFields) {
          try {
            return keyring.reseal(envelope, recordSealingContext(record.org, kind, id, field));
          } catch (error) {
            complaint = error;
          }
        }
        report(`${kind} ${id}: ${place} does not open: ${complaint instanceof Error ? complaint.message : complaint}`);
        return envelope;
      };
      const resealed = JSON.stringify(withEnvelopes(record, '', reseal));
      return resealed === json ? null : resealed;
    });
  }
  return changed;
}

/** Members of a list have the position of the list. */
function withEnvelopes(value: unknown, place: string, map: (envelope: string, place: string) => string): unknown {
  if (typeof value === 'string') return isSealed(value) ? map(value, place) : value;
  if (Array.isArray(value)) return value.map((item) => withEnvelopes(item, place, map));
  if (!isContainer(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, withEnvelopes(member, name, map)]));
}
