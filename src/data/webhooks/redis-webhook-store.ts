import type { Clock } from '../../core/clock.ts';
import { PosthornError } from '../../core/errors.ts';
import type { Logger } from '../../core/logger.ts';
import { foldedText } from '../../core/text-search.ts';
import { namedArgument } from '../../redis/script.ts';
import type { PageQuery, ViewPage } from '../shard/messages.ts';
import { integer, list, text } from '../shard/script-reply.ts';
import { endpointRotations } from './secret-rotations.ts';
import { subscribeEndpoint } from './subscribe-endpoint.ts';
import {
  changedApplication,
  changedEndpoint,
  changedSubscription,
  externalIdTaken,
  idTaken,
  removeWebhook,
  replaceWebhook,
  type Stamped,
  type WebhookReplacement,
  webhookNotFound,
  webhookRows,
} from './webhook-changes.ts';
import { newIdPart, parseWebhookId, webhookId, webhookIdPrefixes } from './webhook-ids.ts';
import { applicationKind, endpointKind, idParts, type KindOfWebhooks, subscriptionKind } from './webhook-kinds.ts';
import { targetChange, WebhookNotes } from './webhook-notes.ts';
import { webhookCounts, webhookPage } from './webhook-pages.ts';
import { newApplicationContent, newEndpointContent } from './webhook-records.ts';
import { applicationRow, type Row } from './webhook-rows.ts';
import { type WebhookScriptOptions, WebhookScripts } from './webhook-scripts.ts';
import { WebhookSweeper } from './webhook-sweeper.ts';
import { deletedEventTypeIds, deletedNames } from './webhook-tombstones.ts';
import type {
  ApplicationFilter,
  EndpointFilter,
  FilterRun,
  NewWebhookApplication,
  NewWebhookEndpoint,
  NewWebhookSubscription,
  SubscriptionFilter,
  WebhookApplication,
  WebhookApplicationChange,
  WebhookEndpoint,
  WebhookEndpointChange,
  WebhookIds,
  WebhookSubscription,
  WebhookSubscriptionChange,
} from './webhooks.ts';

const numberTriesMax = 5;
/** Longer than a request takes that has seen the event type. */
const deletedEventTypeMs = 3_600_000;
const retiredTransformMs = 60_000;

type StoreOptions = WebhookScriptOptions & { clock: Clock; logger: Logger; shards?: () => number };

/**
 * Applications, endpoints and subscriptions of an organization, in one slot of Redis (`webhook-keys.ts`); why not as custom resources:
 * docs/decisions/0006-webhook-objects-in-redis.md. Whatever is below something deleted
 * is gone with it. Ids of other organizations are unknown. Lists are newest first; a page may be shorter than asked for when
 * few match, and `nextCursor` tells whether there is more. Everything rejects with UNAVAILABLE when Redis does not answer, lists with
 * INVALID_QUERY for a forged cursor, changes and deletions with RESOURCE_NOT_FOUND for what is not there, and with
 * CONFLICT when `expectedRevision` is given and another.
 */
export class RedisWebhookStore {
  readonly #scripts: WebhookScripts;
  readonly #clock: Clock;
  readonly #notes: WebhookNotes;
  readonly #sweeper: WebhookSweeper;
  readonly #rotations: ReturnType<typeof endpointRotations> | undefined;

  /** `epoch`: of the leader that writes what custom resources say; `writes`: of who answers users (`WebhookScripts`); `shards`: of who rotates secrets. */
  constructor({ epoch, writes, shards, ...options }: StoreOptions) {
    this.#scripts = new WebhookScripts({ ...options, writes, epoch });
    this.#clock = options.clock;
    this.#notes = new WebhookNotes(options);
    this.#sweeper = new WebhookSweeper(options);
    this.#rotations = shards && endpointRotations({ ...options, shards, announce: (org) => this.#sweeper.announce(org) });
  }

  application(org: string, id: string): Promise<WebhookApplication | null> {
    return this.#one(applicationKind, org, id);
  }

  async applicationByExternalId(org: string, externalId: string): Promise<WebhookApplication | null> {
    return (await this.#rowByExternalId(org, externalId))?.object ?? null;
  }

  /** By id; those that are not there are left out. At most 1,000. */
  applicationsById(org: string, ids: readonly string[]): Promise<Map<string, WebhookApplication>> {
    return this.#byId(applicationKind, org, ids);
  }

  applications(org: string, filter: ApplicationFilter, page: PageQuery): Promise<ViewPage<WebhookApplication>> {
    const { search, isDisabled, orderBy = 'created_at', order = 'desc' } = filter;
    const wanted = foldedText(search ?? '');
    const isWanted = ({ name, externalId, isDisabled: is }: WebhookApplication): boolean =>
      (isDisabled ?? is) === is && [name, externalId ?? ''].some((each) => foldedText(each).includes(wanted));
    const listing = {
      kind: applicationKind,
      what: orderBy === 'name' ? ('an' as const) : ('ap' as const),
      isUpwards: order === 'asc',
      scope: [orderBy, order, search, isDisabled],
      ...(wanted === undefined && isDisabled === undefined ? {} : { isWanted }),
    };
    return webhookPage(this.#scripts, org, listing, page);
  }

  /** CONFLICT when the external id or the id is taken. */
  async createApplication(application: NewWebhookApplication): Promise<WebhookApplication> {
    const made = await this.#makeApplication(application);
    if ('taken' in made) throw externalIdTaken();
    return made.object;
  }

  /** The application of that external id, made or changed; what is absent stays. */
  async upsertApplication(
    application: NewWebhookApplication & { externalId: string },
  ): Promise<{ application: WebhookApplication; created: boolean }> {
    const { org, externalId, id: _id, mark: _mark, shard: _shard, ...change } = application;
    let row = await this.#rowByExternalId(org, externalId);
    for (let tries = 0; tries < numberTriesMax; tries++) {
      if (row === null) {
        const made = await this.#makeApplication(application);
        if ('object' in made) return { application: made.object, created: true };
        row = made.taken;
      }
      const changed = await this.#replace(applicationKind, { org, row, change: (stored) => changedApplication(stored, change) });
      if (changed !== null) return { application: changed, created: false };
      row = null;
    }
    throw new PosthornError('CONFLICT', 'Other requests keep creating and deleting the application.');
  }

  updateApplication(org: string, id: string, change: WebhookApplicationChange, expectedRevision?: number): Promise<WebhookApplication> {
    return this.#update(applicationKind, org, id, { change: (stored) => changedApplication(stored, change), expectedRevision });
  }

  /** With its endpoints and their subscriptions: they are gone at once, and what they took is given back in the background. */
  deleteApplication(org: string, id: string, expectedRevision?: number): Promise<void> {
    return this.#delete(applicationKind, org, id, expectedRevision);
  }

  endpoint(org: string, id: string): Promise<WebhookEndpoint | null> {
    return this.#one(endpointKind, org, id);
  }

  endpointsById(org: string, ids: readonly string[]): Promise<Map<string, WebhookEndpoint>> {
    return this.#byId(endpointKind, org, ids);
  }

  endpoints(org: string, { applicationId, isDisabled }: EndpointFilter, page: PageQuery): Promise<ViewPage<WebhookEndpoint>> {
    const listing = {
      kind: endpointKind,
      ...(applicationId === undefined ? { what: 'ep' as const } : { what: 'a' as const, above: applicationId }),
      scope: [applicationId, isDisabled],
      ...(isDisabled === undefined ? {} : { isWanted: (endpoint: WebhookEndpoint) => endpoint.isDisabled === isDisabled }),
    };
    return webhookPage(this.#scripts, org, listing, page);
  }

  /** How many each application has. */
  endpointCounts(org: string, applicationIds: readonly string[]): Promise<Map<string, number>> {
    return webhookCounts(this.#scripts, org, 'a', applicationIds);
  }

  /** RESOURCE_NOT_FOUND without the application; CONFLICT when the id is taken. */
  async createEndpoint(endpoint: NewWebhookEndpoint): Promise<WebhookEndpoint> {
    const { org, applicationId } = endpoint;
    const made = await this.#make(endpointKind, endpoint, (id) => {
      const content = newEndpointContent(endpoint, id, this.#clock.now());
      return { object: { id, org, applicationId, ...content }, named: { application: idParts('application', applicationId) } };
    });
    if ('taken' in made) throw idTaken(endpointKind);
    return made.object;
  }

  updateEndpoint(org: string, id: string, change: WebhookEndpointChange, expectedRevision?: number): Promise<WebhookEndpoint> {
    const changed = (stored: WebhookEndpoint) => changedEndpoint(stored, change);
    return this.#update(endpointKind, org, id, { change: changed, expectedRevision, followUp: this.#rotations });
  }

  /** With its subscriptions. */
  deleteEndpoint(org: string, id: string, expectedRevision?: number): Promise<void> {
    return this.#delete(endpointKind, org, id, expectedRevision);
  }

  subscription(org: string, id: string): Promise<WebhookSubscription | null> {
    return this.#one(subscriptionKind, org, id);
  }

  subscriptions(org: string, filter: SubscriptionFilter, page: PageQuery): Promise<ViewPage<WebhookSubscription>> {
    const { endpointId, eventTypeId, applicationId, isEnabled } = filter;
    // The narrowest list is walked, and the rest looked at.
    const walked =
      endpointId !== undefined
        ? { what: 'e' as const, above: endpointId }
        : applicationId !== undefined
          ? { what: 's' as const, above: applicationId }
          : eventTypeId !== undefined
            ? { what: 't' as const, above: eventTypeId }
            : { what: 'sb' as const };
    const rest = [endpointId, applicationId, eventTypeId].filter((each) => each !== undefined).length > 1 || isEnabled !== undefined;
    const isWanted = (subscription: WebhookSubscription): boolean =>
      (applicationId === undefined || applicationId === subscription.applicationId) &&
      (eventTypeId === undefined || eventTypeId === subscription.eventTypeId) &&
      (isEnabled === undefined || isEnabled === subscription.isEnabled);
    const scope = [endpointId, eventTypeId, applicationId, isEnabled];
    return webhookPage(this.#scripts, org, { kind: subscriptionKind, ...walked, scope, ...(rest ? { isWanted } : {}) }, page);
  }

  /** How many each event type has. */
  subscriptionCounts(org: string, eventTypeIds: readonly string[]): Promise<Map<string, number>> {
    return webhookCounts(this.#scripts, org, 't', eventTypeIds);
  }

  subscriptionCountsOfEndpoints(org: string, endpointIds: readonly string[]): Promise<Map<string, number>> {
    return webhookCounts(this.#scripts, org, 'e', endpointIds);
  }

  /**
   * RESOURCE_NOT_FOUND without the endpoint; CONFLICT `Duplicate subscription`, and when the transform is being deleted. That the event type exists
   * is the caller's to check; one that was deleted since is RESOURCE_NOT_FOUND.
   */
  async createSubscription(subscription: NewWebhookSubscription): Promise<WebhookSubscription> {
    const [created] = await subscribeEndpoint({ scripts: this.#scripts, clock: this.#clock }, subscription, [subscription.eventTypeId]);
    if (created === undefined) throw new PosthornError('CONFLICT', 'Duplicate subscription');
    return created;
  }

  /** One for each event type (at most 100) that the endpoint does not subscribe to yet, all in one step. */
  async createSubscriptions(
    template: Omit<NewWebhookSubscription, 'id' | 'eventTypeId'>,
    eventTypeIds: readonly string[],
  ): Promise<{ created: WebhookSubscription[]; skipped: number }> {
    const created = await subscribeEndpoint({ scripts: this.#scripts, clock: this.#clock }, template, eventTypeIds);
    return { created, skipped: eventTypeIds.length - created.length };
  }

  updateSubscription(org: string, id: string, change: WebhookSubscriptionChange, expectedRevision?: number): Promise<WebhookSubscription> {
    return this.#update(subscriptionKind, org, id, { change: (stored) => changedSubscription(stored, change), expectedRevision });
  }

  /** One that is gone, or has another filter by now, is left alone. */
  async noteFilterError(org: string, id: string, { filterExpression, error }: FilterRun): Promise<void> {
    const [row] = await webhookRows(this.#scripts, subscriptionKind, org, [id]);
    if (row == null) return;
    const change = (stored: WebhookSubscription): WebhookSubscription =>
      stored.filterExpression === filterExpression ? { ...stored, lastFilterError: error } : stored;
    await this.#replace(subscriptionKind, { org, row, change, isSilent: true });
  }

  deleteSubscription(org: string, id: string, expectedRevision?: number): Promise<void> {
    return this.#delete(subscriptionKind, org, id, expectedRevision);
  }

  /** Ids of all that is kept by custom resources. */
  customResourceIds(org: string): Promise<string[]> {
    return this.#scripts.customResourceIds(org);
  }

  /**
   * What deleted applications and endpoints were, by id: the name of the application, the URL of the endpoint. For 90 days, and of at most 10,000 deleted
   * objects of the organization. At most 1,000 ids of each.
   */
  deletedNames(org: string, ids: WebhookIds): Promise<Map<string, string>> {
    return deletedNames(this.#scripts, org, ids);
  }

  /** Ids of deleted event types of that name, as long; null: some that were deleted before this was noted may be missing. */
  deletedEventTypeIds(org: string, name: string): Promise<string[] | null> {
    return deletedEventTypeIds(this.#scripts, org, { name, nowMs: this.#clock.now() });
  }

  /** All subscriptions of an event type that is deleted; `name`: the one it had, if it is known. For an hour no other is made, also by callers that have read the event type before. */
  async deleteEventType(org: string, eventTypeId: string, name = ''): Promise<void> {
    await this.#sweeper.announce(org);
    await this.#scripts.run('remove', org, [namedArgument({ kind: 'ty', id: eventTypeId, goneMs: deletedEventTypeMs, name })]);
    await this.#notes.note({ kind: 'eventType', id: eventTypeId });
    await this.#sweeper.begin(org);
  }

  /** An event type is there: it may be subscribed to, also when one of this id was deleted. */
  async admitEventType(org: string, eventTypeId: string): Promise<void> {
    await this.#scripts.run('admit', org, [eventTypeId]);
  }

  /** Ids of the event types that are subscribed to, or were, and not deleted. */
  eventTypeIds(org: string): Promise<string[]> {
    return this.#scripts.eventTypeIds(org);
  }

  /**
   * Before a transform is deleted. Returns how many subscriptions name it; when there are none, none may for a minute, so that it can be deleted
   * meanwhile.
   */
  async retireTransform(org: string, transformId: string): Promise<number> {
    const [count] = list(await this.#scripts.run('retire', org, [transformId, retiredTransformMs]));
    return integer(count);
  }

  async #one<T>(kind: KindOfWebhooks<T>, org: string, id: string): Promise<T | null> {
    const [row] = await webhookRows(this.#scripts, kind, org, [id]);
    return row?.object ?? null;
  }

  async #byId<T extends { id: string }>(kind: KindOfWebhooks<T>, org: string, ids: readonly string[]): Promise<Map<string, T>> {
    const rows = await webhookRows(this.#scripts, kind, org, ids);
    return new Map(rows.flatMap((row) => (row === null ? [] : [[row.object.id, row.object]])));
  }

  async #rowByExternalId(org: string, externalId: string): Promise<Row<WebhookApplication> | null> {
    const [reply] = list(await this.#scripts.run('read', org, [namedArgument({ externalId })]));
    return typeof reply === 'string' ? null : applicationRow(org, reply);
  }

  #makeApplication(application: NewWebhookApplication): Promise<{ object: WebhookApplication } | { taken: Row<WebhookApplication> }> {
    return this.#make(applicationKind, application, (id) => {
      const object = { id, org: application.org, ...newApplicationContent(application, this.#clock.now()) };
      return { object, named: { indexed: applicationKind.indexed(object) } };
    });
  }

  /** `taken`: what has a name that is to be unique. */
  async #make<T>(
    kind: KindOfWebhooks<T>,
    { org, id, mark = '' }: { org: string; id?: string; mark?: string },
    build: (id: string) => { object: T; named: Record<string, unknown> },
  ): Promise<{ object: T } | { taken: Row<T> }> {
    if (id !== undefined && parseWebhookId(kind.kind, id) === null) throw new PosthornError('INTERNAL', `${id} is no id of this kind`);
    for (let tries = 0; tries < numberTriesMax; tries++) {
      const number = await this.#scripts.nextNumber(org, kind.letters);
      const part = id === undefined ? newIdPart() : id.slice(webhookIdPrefixes[kind.kind].length);
      const { object, named } = build(id ?? webhookId(kind.kind, number, part));
      const made = namedArgument({ kind: kind.letters, number, id, part, json: kind.encode(object), mark, ...named });
      const [outcome, row] = list(await this.#scripts.run('create', org, [made]));
      switch (text(outcome)) {
        case 'created':
          return { object };
        case 'made':
          return { object: kind.row(org, row).object };
        case 'taken':
          return { taken: kind.row(org, row) };
        case 'missing':
          throw webhookNotFound(applicationKind);
        case 'exists':
          throw idTaken(kind);
        case 'used':
          // A failover had lost that the number was given out.
          break;
        default:
          throw new PosthornError('INTERNAL', `a script answered ${text(outcome)}`);
      }
    }
    throw new PosthornError('UNAVAILABLE', 'Redis allocates ids that are already in use.', { retryAfterSeconds: 1 });
  }

  async #update<T extends Stamped>(
    kind: KindOfWebhooks<T>,
    org: string,
    id: string,
    replacement: Omit<WebhookReplacement<T>, 'org' | 'row'>,
  ): Promise<T> {
    const [row] = await webhookRows(this.#scripts, kind, org, [id]);
    const changed = row == null ? null : await this.#replace(kind, { org, row, ...replacement });
    if (changed === null) throw webhookNotFound(kind);
    return changed;
  }

  /** Null when it is gone. */
  async #replace<T extends Stamped>(kind: KindOfWebhooks<T>, replacement: WebhookReplacement<T>): Promise<T | null> {
    const { object, isChanged, complete } = await replaceWebhook({ scripts: this.#scripts, clock: this.#clock }, kind, replacement);
    if (object !== null && isChanged) await this.#note(kind, object);
    await complete?.();
    return object;
  }

  async #delete<T extends Stamped>(kind: KindOfWebhooks<T>, org: string, id: string, expectedRevision?: number): Promise<void> {
    // What has nothing below it is removed in one step.
    const isAbove = kind.kind !== 'subscription';
    if (isAbove) await this.#sweeper.announce(org);
    await this.#note(kind, await removeWebhook(this.#scripts, kind, { org, id, expectedRevision }));
    if (isAbove) await this.#sweeper.begin(org);
  }

  async #note<T extends { id: string }>({ kind, target }: KindOfWebhooks<T>, object: T): Promise<void> {
    const targets = target === undefined ? [] : [targetChange(target(object))];
    await this.#notes.note({ kind, id: object.id }, ...targets);
  }
}
