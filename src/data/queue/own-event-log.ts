import type { RedisClient } from '../../redis/connection.ts';
import { namedArgument } from '../../redis/script.ts';
import { throwUnavailable } from '../../redis/unavailable.ts';
import { hashFields } from '../shard/hash-fields.ts';
import { recordKey } from '../shard/record-key.ts';
import { shardKeys } from '../shard/shard-keys.ts';
import { ShardScript } from '../shard/shard-script.ts';

const noteScript = new ShardScript(new URL('./own-endpoint-event.lua', import.meta.url));
const organizationNoteScript = new ShardScript(new URL('./own-organization-event.lua', import.meta.url));

/** An event about a webhook endpoint. */
export interface EndpointEventRecord {
  shard: number;
  /** Organization of the target. */
  org: string;
  routeId: string;
  destinationId: string;
  kind: 'disabled' | 'disabling';
  /** The message whose attempt is the cause. */
  messageId: string;
  /** Grows with each event of the kind: one that is not larger than the last is not recorded again. */
  number: number;
  reason: string;
}

/** An event about an organization itself. */
export type OrganizationEventRecord = {
  org: string;
  /** Its subject. */
  about: string;
  /** Data of the event. */
  data: Record<string, unknown>;
  /** Hops of the cause (`core/hops.ts`); absent: none. */
  hop?: number | undefined;
} & (
  | { kind: 'replayFinished' | 'secretRotated' }
  /** `number` grows with each event to be recorded: one that is not larger than the last is not recorded again. */
  | { kind: 'quotaReached'; number: number }
);

const letters = hashFields.ownEvents;

/** Records own events that no step of a message reports. */
export class OwnEventLog {
  readonly #options: { redis: RedisClient; prefix: string };

  constructor(options: { redis: RedisClient; prefix: string }) {
    this.#options = options;
  }

  /** Nothing where the organization has no source for them. Throws UNAVAILABLE. */
  async note({ shard, org, routeId, destinationId, kind, messageId, number, reason }: EndpointEventRecord): Promise<void> {
    const { redis, prefix } = this.#options;
    const message = recordKey(messageId, shard) ?? '-';
    const note = namedArgument({ org, route: routeId, destination: destinationId, kind: letters[kind], number, reason, message });
    await noteScript.run(redis, shardKeys(prefix, shard).declared, [note]).catch(throwUnavailable);
  }

  /** The caller checks that the organization has a source for it. `shard`: where it is recorded, as a rule that of the organization's id. Throws UNAVAILABLE. */
  async noteOfOrganization(note: OrganizationEventRecord, shard: number): Promise<void> {
    const { redis, prefix } = this.#options;
    const { org, about, data, hop = '' } = note;
    const number = note.kind === 'quotaReached' ? note.number : null;
    const packed = namedArgument({ org, kind: letters[note.kind], about, number, data: JSON.stringify(data), hop: String(hop) });
    await organizationNoteScript.run(redis, shardKeys(prefix, shard).declared, [packed]).catch(throwUnavailable);
  }
}
