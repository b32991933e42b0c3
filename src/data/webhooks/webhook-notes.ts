import { randomUUID } from 'node:crypto';
import type { Logger } from '../../core/logger.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { Script } from '../../redis/script.ts';
import { registryFields } from '../registry/registry-keys.ts';
import type { WebhookKind } from './webhook-ids.ts';
import { sharedWebhookKeys } from './webhook-keys.ts';

const noteScript = new Script(new URL('./webhook-note.lua', import.meta.url), registryFields);
const changesKept = 10_000;

/** `target` and `targets`: for the keepers of queues (`targetChange`). */
export interface WebhookChange {
  kind: WebhookKind | 'eventType' | 'organization' | 'target' | 'targets';
  id: string;
}

/** The queue of an endpoint, as it is named beside a change of the endpoint: what is deleted could not be asked for it any more. */
export interface WebhookTarget {
  org: string;
  applicationId: string;
  /** Null: all of the application. */
  endpointId: string | null;
}

export function targetChange({ org, applicationId, endpointId }: WebhookTarget): WebhookChange {
  return endpointId === null
    ? { kind: 'targets', id: `${org}/${applicationId}` }
    : { kind: 'target', id: `${org}/${applicationId}/${endpointId}` };
}

/** Null when the change key names no target. */
export function changedTarget(changeKey: string): WebhookTarget | null {
  const match = /^webhookTargets?:([^/]+)\/([^/]+)(?:\/([^/]+))?$/.exec(changeKey);
  const [, org, applicationId, endpointId = null] = match ?? [];
  return org === undefined || applicationId === undefined ? null : { org, applicationId, endpointId };
}

/** As it stands in the stream: `webhookEndpoint:ep_x`, `webhookOrganization:org_x`. */
export function webhookChangeKey({ kind, id }: WebhookChange): string {
  return `webhook${kind.charAt(0).toUpperCase()}${kind.slice(1)}:${id}`;
}

/** Tells those who keep objects of the webhook store (`webhook-directory.ts`) that one has changed. */
export class WebhookNotes {
  readonly #options: { redis: RedisClient; prefix: string; logger: Logger };

  constructor(options: { redis: RedisClient; prefix: string; logger: Logger }) {
    this.#options = options;
  }

  /** After the write. Never fails: a reader that misses it reads the object again after a while. */
  async note(...changes: WebhookChange[]): Promise<void> {
    const { redis, prefix, logger } = this.#options;
    const { marker, sequence, changes: stream } = sharedWebhookKeys(prefix);
    try {
      await noteScript.run(redis, [marker, sequence, stream], [randomUUID(), changesKept, ...changes.map(webhookChangeKey)]);
    } catch (error) {
      logger.warn({ err: error }, 'a change of a webhook object was not announced; workers detect it within a minute');
    }
  }
}
