import type { Clock } from '../core/clock.ts';
import { publicKeyPrefix, signingKeyPrefix } from '../core/ed25519-keys.ts';
import type { UntoldRotation } from '../core/own-event.ts';
import type { DestinationRecord, RecordByKind, SourceRecord } from '../core/records.ts';
import type { Keyring } from '../core/sealing.ts';
import { recordSealingContext } from '../core/sealing-contexts.ts';
import { shardOf } from '../core/shard-of.ts';
import type { OwnEventLog } from '../data/queue/own-event-log.ts';
import type { FencedPublisher } from './fenced-publisher.ts';
import type { RecordSink } from './record-sink.ts';

type SignedKind = 'source' | 'destination';
type SignedRecord = SourceRecord | DestinationRecord;

/** Where a leader records Posthorn's own events. */
export interface LeaderEventSink {
  /** Whether the organization has an enabled source for them. Rejects with UNAVAILABLE. */
  hasOwnSource(org: string): Promise<boolean>;
  notes: Pick<OwnEventLog, 'noteOfOrganization'>;
}

export interface RotationSinkOptions {
  publisher: Pick<FencedPublisher, 'get'>;
  keyring: Keyring;
  clock: Clock;
  /** Null: no event is published. */
  leaderEvents: LeaderEventSink | null;
  shards: number;
  /** Which field manager rotated the secret of a record; null: not known. */
  rotatedBy(record: SignedRecord): Promise<string | null>;
}

/** The replaced secret is stored beside the new one, and so lasts as long. */
const withoutEnd = '9999-12-31T23:59:59.000Z';

/**
 * Records `secret.rotated` when a published record has another signing secret, for organizations that have a source for it. The published record has the rotation
 * until it is recorded, so that the next leader records it after a crash. A repeated entry makes the same event.
 */
export function rotationSink<R extends SignedKind>(
  kind: R,
  sink: RecordSink<RecordByKind[R]>,
  { publisher, keyring, clock, leaderEvents, shards, rotatedBy }: RotationSinkOptions,
): RecordSink<RecordByKind[R]> {
  if (leaderEvents === null) return sink;
  const note = async ({ id, org }: SignedRecord, { atMs, shard, by, previousSecretExpiresAt }: UntoldRotation): Promise<void> => {
    const rotatedAt = new Date(atMs).toISOString();
    const data = { kind, [`${kind}Id`]: id, ...(by !== undefined && { by }), rotatedAt, previousSecretExpiresAt };
    await leaderEvents.notes.noteOfOrganization({ org, kind: 'secretRotated', about: `${id} ${atMs}`, data }, shard);
  };
  return {
    ...sink,
    publish: async (record) => {
      if (envelopesOf(record).length === 0) return sink.publish(record);
      const stored = await publisher.get(kind, record.id);
      if (stored?.org !== record.org) return sink.publish(record);
      if (stored.untoldRotation !== undefined) await note(stored, stored.untoldRotation);
      const open = (envelope: string): string =>
        envelope.startsWith(publicKeyPrefix)
          ? envelope
          : keyring.open(envelope, recordSealingContext(record.org, kind, record.id, 'signingSecrets'));
      const replaced = replacedEnvelope(envelopesOf(stored), envelopesOf(record), open);
      if (replaced === null || !(await leaderEvents.hasOwnSource(record.org))) return sink.publish(record);
      const by = await rotatedBy(record);
      const rotation = {
        atMs: clock.now(),
        shard: shardOf(record.org, shards),
        previousSecretExpiresAt: endOf(replaced, record),
        ...(by !== null && { by }),
      };
      const obstacle = await sink.publish({ ...record, untoldRotation: rotation });
      if (obstacle !== null) return obstacle;
      await note(record, rotation);
      return sink.publish(record);
    },
  };
}

/** Those of the secrets, and public keys, which are not sealed. */
function envelopesOf(record: SignedRecord): readonly string[] {
  if (!('type' in record)) return [...record.signingSecrets, ...(record.publicKeys ?? [])];
  return record.type === 'http' ? record.http.signingSecrets : [];
}

/** The envelope of the current secret before, of the current Ed25519 key, or the public key, where that has become another; null: none has, or it does not open. */
function replacedEnvelope(before: readonly string[], after: readonly string[], open: (envelope: string) => string): string | null {
  if (before.length === after.length && before.every((envelope, i) => envelope === after[i])) return null;
  try {
    const opened = (envelopes: readonly string[]) => envelopes.map((envelope) => ({ envelope, text: open(envelope) }));
    const [old, current] = [opened(before), opened(after)];
    for (const wanted of [null, signingKeyPrefix, publicKeyPrefix]) {
      const firstOf = (all: typeof old) => all.find(({ text }) => prefixOf(text) === wanted);
      const [was, is] = [firstOf(old), firstOf(current)];
      if (was !== undefined && is !== undefined && was.text !== is.text) return was.envelope;
    }
  } catch {
    // Sealed under a key that is gone: whether it is another secret cannot be known.
  }
  return null;
}

/** Returns the prefix of an Ed25519 key; null: it is another secret. */
function prefixOf(text: string): string | null {
  return [signingKeyPrefix, publicKeyPrefix].find((prefix) => text.startsWith(prefix)) ?? null;
}

function endOf(replaced: string, record: SignedRecord): string | null {
  if (envelopesOf(record).includes(replaced)) return withoutEnd;
  const previous = 'previousSigningSecrets' in record ? record.previousSigningSecrets : undefined;
  const isPrevious = previous !== undefined && [...previous.sealed, ...(previous.publicKeys ?? [])].includes(replaced);
  return isPrevious ? new Date(previous.validUntilMs).toISOString() : null;
}
