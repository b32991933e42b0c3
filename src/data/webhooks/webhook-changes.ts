import type { Clock } from '../../core/clock.ts';
import { PosthornError } from '../../core/errors.ts';
import { namedArgument } from '../../redis/script.ts';
import { list, text } from '../shard/script-reply.ts';
import { changesMatching, idParts, type KindOfWebhooks } from './webhook-kinds.ts';
import { definedOf } from './webhook-records.ts';
import { type Row, withJson } from './webhook-rows.ts';
import type { WebhookScripts } from './webhook-scripts.ts';
import type {
  WebhookApplication,
  WebhookApplicationChange,
  WebhookEndpoint,
  WebhookEndpointChange,
  WebhookSubscription,
  WebhookSubscriptionChange,
} from './webhooks.ts';

/** Each time somebody else has changed the same object meanwhile, so that many changes of one object all come through. */
const triesMax = 200;

export interface Stamped {
  id: string;
  updatedAtMs: number;
  revision: number;
}

export function webhookNotFound<T>({ kind }: KindOfWebhooks<T>): PosthornError {
  return new PosthornError('RESOURCE_NOT_FOUND', `There is no such ${kind}.`);
}

/** Applies a change to a stored object. Absent fields stay. Enabling removes the reason. */
export function changedApplication(stored: WebhookApplication, change: WebhookApplicationChange): WebhookApplication {
  const { rateLimits, ...rest } = change;
  const changed = { ...stored, ...definedOf(rest), rateLimits: { ...stored.rateLimits, ...definedOf(rateLimits ?? {}) } };
  return isEnabling(stored, change) ? { ...changed, disabledReason: null } : changed;
}

export function changedEndpoint(stored: WebhookEndpoint, change: WebhookEndpointChange): WebhookEndpoint {
  const { circuit, signingKeyIfNone, ...rest } = change;
  const signingKey = stored.signingKey ?? signingKeyIfNone ?? null;
  const { disabledRevision, ...before } = stored;
  const changed = { ...before, signingKey, ...definedOf(rest), circuit: { ...stored.circuit, ...definedOf(circuit ?? {}) } };
  if (!changed.isDisabled) return isEnabling(stored, change) ? { ...changed, disabledReason: null } : changed;
  return { ...changed, ...definedOf({ disabledRevision: stored.isDisabled ? disabledRevision : stored.revision + 1 }) };
}

function isEnabling(stored: { isDisabled: boolean }, change: { isDisabled?: boolean | undefined }): boolean {
  return stored.isDisabled && change.isDisabled === false;
}

/** With another filter nothing has failed yet. */
export function changedSubscription(stored: WebhookSubscription, change: WebhookSubscriptionChange): WebhookSubscription {
  const changed = { ...stored, ...definedOf(change) };
  return changed.filterExpression === stored.filterExpression ? changed : { ...changed, lastFilterError: null };
}

/** Objects by id with their records; null where there is none. */
export async function webhookRows<T>(
  scripts: WebhookScripts,
  kind: KindOfWebhooks<T>,
  org: string,
  ids: readonly string[],
): Promise<(Row<T> | null)[]> {
  if (ids.length === 0) return [];
  const replies = list(
    await scripts.run('read', org, [namedArgument({ kind: kind.letters, ids: ids.map((id) => idParts(kind.kind, id)) })]),
  );
  return replies.map((reply) => (typeof reply === 'string' ? null : kind.row(org, reply)));
}

/** Rotation of the secret of an endpoint: its name among those of the organization, and what is noted of it. */
export interface Prepared {
  rotation: { name: string; text: string; maxPending: number };
}

/** Work after a change. The script that writes the change also stores what the work needs. */
export interface FollowUp<T> {
  /** What `webhook-update.lua` stores for it; null when the change asks for nothing. Called before each attempt to write. */
  prepare(before: T, after: T): Promise<Prepared | null>;
  /** The change is written, with that. Never rejects. */
  complete(after: T, prepared: Prepared): Promise<void>;
}

export interface WebhookReplacement<T> {
  org: string;
  /** As it was read last. */
  row: Row<T>;
  /** Returns what the object shall be; may throw. */
  change(stored: T): T;
  expectedRevision?: number | undefined;
  followUp?: FollowUp<T> | undefined;
  /** Not a change that a user has made: revision and time of the last one stay. */
  isSilent?: boolean;
}

/**
 * Changes an object, also when another process changes it at the same time; an equal object is not written. The object is null when it is gone. `carryOn` completes the
 * follow-up that was written; if it is not called, another process completes it. Throws
 * CONFLICT when the revision is not the expected one, another application has the external id, or the transform is being deleted.
 */
export async function replaceWebhook<T extends Stamped>(
  { scripts, clock }: { scripts: WebhookScripts; clock: Clock },
  kind: KindOfWebhooks<T>,
  { org, row: first, change, expectedRevision, followUp, isSilent = false }: WebhookReplacement<T>,
): Promise<{ object: T | null; isChanged: boolean; complete?: () => Promise<void> }> {
  let row = first;
  for (let tries = 0; tries < triesMax; tries++) {
    const { object, record, number } = row;
    requireRevision(kind, object, expectedRevision);
    const wanted = change(object);
    if (kind.encode(wanted) === kind.encode(object)) return { object, isChanged: false };
    const stamps = isSilent ? {} : { updatedAtMs: clock.now(), revision: object.revision + 1 };
    const stamped = { ...wanted, ...stamps };
    const replacement = withJson(record, kind.encode(stamped));
    const prepared = await followUp?.prepare(object, stamped);
    const update = namedArgument({
      kind: kind.letters,
      number,
      believed: record,
      wanted: replacement,
      changesMatching: changesMatching(kind, object, wanted),
      before: kind.indexed(object),
      after: kind.indexed(wanted),
      ...prepared,
    });
    const [outcome, other] = list(await scripts.run('update', org, [update]));
    switch (text(outcome)) {
      case 'updated':
        return {
          object: kind.row(org, row.reply.with(1, replacement)).object,
          isChanged: true,
          ...(prepared != null && { complete: async () => followUp?.complete(stamped, prepared) }),
        };
      case 'stored':
        row = kind.row(org, other);
        break;
      case 'gone':
        return { object: null, isChanged: false };
      case 'taken':
        throw externalIdTaken();
      case 'retired':
        throw transformRetired();
      default:
        throw new PosthornError('INTERNAL', `a script answered ${text(outcome)}`);
    }
  }
  throw new PosthornError('CONFLICT', `Other requests keep changing the ${kind.kind}.`);
}

/** Deletes an object and returns it. Throws RESOURCE_NOT_FOUND when it does not exist, CONFLICT when its revision is not the expected one. */
export async function removeWebhook<T extends Stamped>(
  scripts: WebhookScripts,
  kind: KindOfWebhooks<T>,
  { org, id, expectedRevision }: { org: string; id: string; expectedRevision: number | undefined },
): Promise<T> {
  let [row] = await webhookRows(scripts, kind, org, [id]);
  for (let tries = 0; row != null && tries < triesMax; tries++) {
    requireRevision(kind, row.object, expectedRevision);
    const removal = namedArgument({ kind: kind.letters, number: row.number, believed: row.record, indexed: kind.indexed(row.object) });
    const [outcome, other] = list(await scripts.run('remove', org, [removal]));
    // One that is gone by now was there: a command that is sent again finds what it has done.
    if (text(outcome) !== 'stored') return row.object;
    row = kind.row(org, other);
  }
  throw row == null ? webhookNotFound(kind) : new PosthornError('CONFLICT', `Other requests keep changing the ${kind.kind}.`);
}

function requireRevision<T>({ kind }: KindOfWebhooks<T>, { revision }: Stamped, expected: number | undefined): void {
  if (expected !== undefined && revision !== expected)
    throw new PosthornError('CONFLICT', `Another request has changed the ${kind} meanwhile.`);
}

export function transformRetired(): PosthornError {
  return new PosthornError('CONFLICT', 'The transform is being deleted.', { details: { transformId: ['is being deleted'] } });
}

export function externalIdTaken(): PosthornError {
  return new PosthornError('CONFLICT', 'Another application has this external id.', { details: { externalId: ['is taken'] } });
}

export function idTaken<T>({ kind }: KindOfWebhooks<T>): PosthornError {
  return new PosthornError('CONFLICT', `Another ${kind} has this id.`);
}
