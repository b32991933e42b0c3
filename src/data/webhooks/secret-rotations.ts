import { z } from 'zod';
import type { Logger } from '../../core/logger.ts';
import { parsePlainJson } from '../../core/plain-json.ts';
import { shardOf } from '../../core/shard-of.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { throwUnavailable } from '../../redis/unavailable.ts';
import { OwnEventLog } from '../queue/own-event-log.ts';
import { readHasOwnSource } from '../registry/own-sources.ts';
import type { FollowUp } from './webhook-changes.ts';
import { webhookKeys } from './webhook-keys.ts';
import type { WebhookEndpoint } from './webhooks.ts';

/** Most pending rotations of one organization. Each is pending for some milliseconds, or for longer when its process has died: of more, those are lost. */
const maxPending = 1000;

/** A pending rotation, as the webhook store keeps it. The event's id depends on the shard, so a process that notes the rotation again uses the same one. */
const pendingRotation = z.object({ shard: z.int().min(0), data: z.record(z.string(), z.unknown()) });

interface RotationOptions {
  redis: RedisClient;
  prefix: string;
  logger: Logger;
  /** Lets `WebhookSweeper` look at the organization; called before the secret is stored. */
  announce: (org: string) => Promise<void>;
  /** How many there are. */
  shards: () => number;
}

/**
 * Notes `secret.rotated` of webhook endpoints for organizations that have a source for it. The script that stores the new secret also stores the rotation as pending.
 * The process that rotates the secret notes the event after that. `WebhookSweeper` notes it if that process dies. A repeated note makes the same event.
 */
export function endpointRotations(options: RotationOptions): FollowUp<WebhookEndpoint> {
  const { redis, prefix, logger, announce, shards } = options;
  const notes = new RotationNotes(options);
  return {
    prepare: async (before, after) => {
      const { org, id, secret } = after;
      if (secret.version === before.secret.version || !(await readHasOwnSource({ redis, prefix }, org))) return null;
      await announce(org);
      const pending: z.input<typeof pendingRotation> = { shard: shardOf(org, shards()), data: dataOf(before, after) };
      return { rotation: { name: `${id} ${secret.version}`, text: JSON.stringify(pending), maxPending } };
    },
    complete: async ({ org }, { rotation }) => {
      await notes
        .note(org, rotation.name, rotation.text)
        .catch((error: unknown) => logger.debug({ err: error, organization: org }, 'a secret.rotated event was not noted; retrying later'));
    },
  };
}

/** Pending rotations become notes for Posthorn's own events. Everything throws UNAVAILABLE. */
export class RotationNotes {
  readonly #options: { redis: RedisClient; prefix: string };
  readonly #notes: OwnEventLog;

  constructor(options: { redis: RedisClient; prefix: string }) {
    this.#options = options;
    this.#notes = new OwnEventLog(options);
  }

  /** `name`: of the rotation among those of the organization. */
  async note(org: string, name: string, pending: string): Promise<void> {
    const { redis, prefix } = this.#options;
    const { shard, data } = pendingRotation.parse(parsePlainJson(pending));
    await this.#notes.noteOfOrganization({ org, kind: 'secretRotated', about: name, data }, shard);
    await redis.hdel(webhookKeys(prefix, org).rotations, name).catch(throwUnavailable);
  }

  /** Records the pending rotations of processes that died. */
  async notePending(org: string): Promise<void> {
    const { redis, prefix } = this.#options;
    const pending = await redis.hgetall(webhookKeys(prefix, org).rotations).catch(throwUnavailable);
    const errors: unknown[] = [];
    for (const [name, each] of Object.entries(pending)) await this.note(org, name, each).catch((error: unknown) => void errors.push(error));
    if (errors.length > 0) throw errors[0];
  }
}

/** Nothing of a secret, not even its shown part, and no URL, which may have a token in it. */
function dataOf(before: WebhookEndpoint, after: WebhookEndpoint): Record<string, unknown> {
  const { id, applicationId, secret, signingKey, managedBy, updatedAtMs } = after;
  const replaced = [before.secret.sealed, before.signingKey?.sealed];
  const earlier = [...secret.previous, ...(signingKey?.previous ?? [])].find(({ sealed }) => replaced.includes(sealed));
  return {
    kind: 'endpoint',
    applicationId,
    endpointId: id,
    secretVersion: secret.version,
    by: managedBy === null ? 'api' : 'resource',
    rotatedAt: new Date(updatedAtMs).toISOString(),
    previousSecretExpiresAt: earlier === undefined ? null : new Date(earlier.validUntilMs).toISOString(),
  };
}
