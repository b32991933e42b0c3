import { alertOrganization } from '../core/alert.ts';
import type { Clock } from '../core/clock.ts';
import type { RecordKind } from '../core/records.ts';
import { webhookOrganization } from '../core/webhook.ts';
import type { MessagePurger } from '../data/shard/messages.ts';
import type { ObjectMeta } from '../resources/metadata.ts';
import { kindsWithSecrets, retractionOrder } from '../resources/references.ts';
import { type ControllerCaches, indexes } from './controller-caches.ts';
import type { FencedPublisher } from './fenced-publisher.ts';
import { findDeletedIds } from './find-deleted-ids.ts';
import { isOf, organizationIdOf } from './held-ids.ts';
import { OrganizationRecords } from './organization/organization-records.ts';
import { isWithdrawn } from './retained-organizations.ts';
import { webhookEventTypeSink } from './webhook-event-type/webhook-event-type-sink.ts';
import { sweepEventTypes, sweepWebhooks, type WebhookSweepOptions } from './webhook-sweep.ts';

export interface SweepOptions extends WebhookSweepOptions {
  caches: ControllerCaches;
  publisher: FencedPublisher;
  purger: MessagePurger;
  clock: Clock;
}

interface CacheById {
  byIndex(index: string, value: string): readonly { metadata: ObjectMeta }[];
}

const intervalMs = 600_000;
const retryMs = 5000;
const countersIntervalMs = 86_400_000;

/**
 * Retracts the records whose objects are gone: those deleted while no process watched; and once a day removes the counters and targets of what was
 * deleted. Runs after the first complete list and every ten minutes, until the signal aborts.
 */
export async function runSweep(options: SweepOptions, signal: AbortSignal): Promise<void> {
  const { clock, logger } = options;
  let countersAtMs = Number.NEGATIVE_INFINITY;
  while (!signal.aborted) {
    let waitMs = intervalMs;
    try {
      await sweep(options, signal);
      if (clock.now() - countersAtMs >= countersIntervalMs) {
        await sweepCounters(options, signal);
        countersAtMs = clock.now();
      }
    } catch (error) {
      if (!signal.aborted) logger.warn({ err: error }, 'the sweep of orphaned records failed; retrying');
      waitMs = retryMs;
    }
    await clock.sleep(waitMs * (0.8 + 0.4 * Math.random()), signal);
  }
}

async function sweepCounters({ caches, publisher, purger, webhooks, logger }: SweepOptions, signal: AbortSignal): Promise<void> {
  let forgotten = 0;
  for (const organization of await publisher.ids('organization')) {
    const findDeleted = findDeletedIds({ caches, webhooks }, organization);
    for (const each of [organization, alertOrganization(organization), webhookOrganization(organization)])
      forgotten += await purger.removeDeletedCounters(each, findDeleted, signal);
  }
  if (forgotten > 0) logger.info({ counters: forgotten }, 'counters of deleted objects were removed');
}

/** Whether one of the objects that request the id is in the organization of the record: requests of others keep no record. */
async function hasObjectOfItsOwner(
  { caches, publisher }: SweepOptions,
  kind: RecordKind,
  id: string,
  objects: readonly { metadata: ObjectMeta }[],
): Promise<boolean> {
  let owner = caches.owners.ownerOf(id);
  if (owner === undefined) {
    const record = await publisher.get(kind, id);
    owner = record !== null && 'org' in record ? record.org : undefined;
    if (owner !== undefined) caches.owners.note(id, owner);
  }
  return objects.some((object) => {
    if (owner === undefined || isWithdrawn(kind)) return organizationIdOf(caches, object) === owner;
    return isOf(caches, object, owner);
  });
}

async function sweep(options: SweepOptions, signal: AbortSignal): Promise<void> {
  const { caches, publisher, purger, logger, clock } = options;
  const organizations = new OrganizationRecords(options);
  await organizations.retainGone(clock.now());
  const retractGone = async (
    kind: RecordKind,
    found: readonly CacheById[],
    retract: (id: string) => Promise<unknown> = (id) => publisher.retract(kind, id),
  ): Promise<string[]> => {
    const gone: string[] = [];
    for (const id of await publisher.ids(kind)) {
      signal.throwIfAborted();
      // Read one by one, as objects come while this runs.
      const objects = found.flatMap((cache) => cache.byIndex(indexes.id, id));
      if (objects.length > 0 && (kind === 'organization' || (await hasObjectOfItsOwner(options, kind, id, objects)))) continue;
      if (kind === 'organization' && !(await organizations.isOver(id, clock.now()))) continue;
      await retract(id);
      gone.push(id);
    }
    if (gone.length > 0) logger.info({ kind, records: gone.length }, 'records of deleted objects were retracted');
    return gone;
  };
  const eventTypes = webhookEventTypeSink({ ...options, organizations: caches.Organization });
  const retractOf: Partial<Record<RecordKind, (id: string) => Promise<unknown>>> = { eventType: (id) => eventTypes.retract(id, '') };
  for (const { kind, recordKind } of retractionOrder) await retractGone(recordKind, [caches[kind]], retractOf[recordKind]);
  const withCredentials = retractionOrder.filter(({ kind }) => kindsWithSecrets.includes(kind));
  await retractGone(
    'credentials',
    withCredentials.map(({ kind }) => caches[kind]),
  );
  await retractGone('organization', [caches.Organization], async (id) => {
    const namespace = caches.retained.get(id)?.namespace ?? null;
    caches.retained.forget(id);
    // Its record goes last: an aborted purge is found again by it.
    await purger.purgeOrganization(id, signal);
    await organizations.remove(id, namespace, signal);
  });
  await sweepWebhooks(options, signal);
  await sweepEventTypes(options, signal);
}
