import type { Clock } from '../../core/clock.ts';
import { PosthornError } from '../../core/errors.ts';
import type { Logger } from '../../core/logger.ts';
import type { ScriptArgument } from '../../redis/script.ts';
import type { PageQuery, ViewPage } from '../shard/messages.ts';
import { integer, list, text } from '../shard/script-reply.ts';
import { endpointRotations } from './secret-rotations.ts';
import {
  changedApplication,
  changedEndpoint,
  changedSubscription,
  externalIdTaken,
  idTaken,
  removeWebhook,
  replaceWebhook,
  transformRetired,
  type WebhookReplacement,
  webhookNotFound,
  webhookRows,
} from './webhook-changes.ts';
import { newIdPart, parseWebhookId, webhookId, webhookIdPrefixes } from './webhook-ids.ts';
import { applicationKind, endpointKind, idArguments, type KindOfWebhooks, subscriptionKind } from './webhook-kinds.ts';
import { targetChange, WebhookNotes } from './webhook-notes.ts';
import { webhookCounts, webhookPage } from './webhook-pages.ts';
import { pastEventTypeIds, pastOf } from './webhook-past.ts';
import { encodeSubscription, newApplicationContent, newEndpointContent, newSubscriptionContent } from './webhook-records.ts';
import { applicationRow, type Row } from './webhook-rows.ts';
import { type WebhookScriptOptions, WebhookScripts } from './webhook-scripts.ts';
import { WebhookSweeper } from './webhook-sweeper.ts';
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
  WebhookStore,
  WebhookSubscription,
  WebhookSubscriptionChange,
} from './webhooks.ts';

const maxSubscriptionsOfEndpoint = 5000;
const maxEventTypesAtOnce = 100;
const numberTriesMax = 5;
/** Longer than a request takes that has seen the event type. */
const deletedEventTypeMs = 3_600_000;
const retiredTransformMs = 60_000;

type StoreOptions = WebhookScriptOptions & { clock: Clock; logger: Logger; shards?: () => number };

export class RedisWebhookStore implements WebhookStore {
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

  applicationsById(org: string, ids: readonly string[]): Promise<Map<string, WebhookApplication>> {
    return this.#byId(applicationKind, org, ids);
  }

  applications(org: string, filter: ApplicationFilter, page: PageQuery): Promise<ViewPage<WebhookApplication>> {
    const { search, isDisabled, orderBy = 'created_at', order = 'desc' } = filter;
    const wanted = search?.toLowerCase();
    const isWanted = ({ name, externalId, isDisabled: is }: WebhookApplication): boolean =>
      (isDisabled === undefined || isDisabled === is) &&
      (wanted === undefined || name.toLowerCase().includes(wanted) || externalId?.toLowerCase().includes(wanted) === true);
    const listing = {
      kind: applicationKind,
      what: orderBy === 'name' ? ('an' as const) : ('ap' as const),
      isUpwards: order === 'asc',
      scope: [orderBy, order, search, isDisabled],
      ...(wanted === undefined && isDisabled === undefined ? {} : { isWanted }),
    };
    return webhookPage(this.#scripts, org, listing, page);
  }

  async createApplication(application: NewWebhookApplication): Promise<WebhookApplication> {
    const made = await this.#makeApplication(application);
    if ('taken' in made) throw externalIdTaken();
    return made.object;
  }

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

  deleteApplication(org: string, id: string): Promise<void> {
    return this.#delete(applicationKind, org, id);
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

  endpointCounts(org: string, applicationIds: readonly string[]): Promise<Map<string, number>> {
    return webhookCounts(this.#scripts, org, 'a', applicationIds);
  }

  async createEndpoint(endpoint: NewWebhookEndpoint): Promise<WebhookEndpoint> {
    const { org, applicationId } = endpoint;
    const made = await this.#make(endpointKind, endpoint, (id) => {
      const content = newEndpointContent(endpoint, id, this.#clock.now());
      return { object: { id, org, applicationId, ...content }, args: idArguments('application', applicationId) };
    });
    if ('taken' in made) throw idTaken(endpointKind);
    return made.object;
  }

  updateEndpoint(org: string, id: string, change: WebhookEndpointChange, expectedRevision?: number): Promise<WebhookEndpoint> {
    const changed = (stored: WebhookEndpoint) => changedEndpoint(stored, change);
    return this.#update(endpointKind, org, id, { change: changed, expectedRevision, followUp: this.#rotations });
  }

  deleteEndpoint(org: string, id: string): Promise<void> {
    return this.#delete(endpointKind, org, id);
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

  subscriptionCounts(org: string, eventTypeIds: readonly string[]): Promise<Map<string, number>> {
    return webhookCounts(this.#scripts, org, 't', eventTypeIds);
  }

  subscriptionCountsOfEndpoints(org: string, endpointIds: readonly string[]): Promise<Map<string, number>> {
    return webhookCounts(this.#scripts, org, 'e', endpointIds);
  }

  async createSubscription(subscription: NewWebhookSubscription): Promise<WebhookSubscription> {
    const [created] = await this.#subscribe(subscription, [subscription.eventTypeId]);
    if (created === undefined) throw new PosthornError('CONFLICT', 'Duplicate subscription');
    return created;
  }

  async createSubscriptions(
    template: Omit<NewWebhookSubscription, 'id' | 'eventTypeId'>,
    eventTypeIds: readonly string[],
  ): Promise<{ created: WebhookSubscription[]; skipped: number }> {
    const created = await this.#subscribe(template, eventTypeIds);
    return { created, skipped: eventTypeIds.length - created.length };
  }

  updateSubscription(org: string, id: string, change: WebhookSubscriptionChange, expectedRevision?: number): Promise<WebhookSubscription> {
    return this.#update(subscriptionKind, org, id, { change: (stored) => changedSubscription(stored, change), expectedRevision });
  }

  async noteFilterError(org: string, id: string, { filterExpression, error }: FilterRun): Promise<void> {
    const [row] = await webhookRows(this.#scripts, subscriptionKind, org, [id]);
    if (row == null) return;
    const change = (stored: WebhookSubscription): WebhookSubscription =>
      stored.filterExpression === filterExpression ? { ...stored, lastFilterError: error } : stored;
    await this.#replace(subscriptionKind, { org, row, change, isSilent: true });
  }

  deleteSubscription(org: string, id: string): Promise<void> {
    return this.#delete(subscriptionKind, org, id);
  }

  customResourceIds(org: string): Promise<string[]> {
    return this.#scripts.customResourceIds(org);
  }

  past(org: string, ids: WebhookIds): Promise<Map<string, string>> {
    return pastOf(this.#scripts, org, ids);
  }

  pastEventTypeIds(org: string, name: string): Promise<string[] | null> {
    return pastEventTypeIds(this.#scripts, org, { name, nowMs: this.#clock.now() });
  }

  async deleteEventType(org: string, eventTypeId: string, name = ''): Promise<void> {
    await this.#sweeper.announce(org);
    await this.#scripts.run('remove', org, ['ty', eventTypeId, deletedEventTypeMs, name]);
    await this.#notes.note({ kind: 'eventType', id: eventTypeId });
    await this.#sweeper.begin(org);
  }

  async admitEventType(org: string, eventTypeId: string): Promise<void> {
    await this.#scripts.run('admit', org, [eventTypeId]);
  }

  eventTypeIds(org: string): Promise<string[]> {
    return this.#scripts.eventTypeIds(org);
  }

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
    const [reply] = list(await this.#scripts.run('read', org, ['ax', externalId]));
    return typeof reply === 'string' ? null : applicationRow(org, reply);
  }

  #makeApplication(application: NewWebhookApplication): Promise<{ object: WebhookApplication } | { taken: Row<WebhookApplication> }> {
    return this.#make(applicationKind, application, (id) => {
      const object = { id, org: application.org, ...newApplicationContent(application, this.#clock.now()) };
      return { object, args: applicationKind.indexed(object) };
    });
  }

  /** `taken`: what has a name that is to be unique. */
  async #make<T>(
    kind: KindOfWebhooks<T>,
    { org, id, mark = '' }: { org: string; id?: string; mark?: string },
    build: (id: string) => { object: T; args: ScriptArgument[] },
  ): Promise<{ object: T } | { taken: Row<T> }> {
    if (id !== undefined && parseWebhookId(kind.kind, id) === null) throw new PosthornError('INTERNAL', `${id} is no id of this kind`);
    for (let tries = 0; tries < numberTriesMax; tries++) {
      const number = await this.#scripts.nextNumber(org, kind.letters);
      const part = id === undefined ? newIdPart() : id.slice(webhookIdPrefixes[kind.kind].length);
      const { object, args } = build(id ?? webhookId(kind.kind, number, part));
      const [outcome, row] = list(
        await this.#scripts.run('create', org, [kind.letters, number, id ?? '', part, kind.encode(object), mark, ...args]),
      );
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

  /** Those that are made, in the order of the event types. */
  async #subscribe(
    { id, mark = '', ...template }: Omit<NewWebhookSubscription, 'eventTypeId'>,
    eventTypeIds: readonly string[],
  ): Promise<WebhookSubscription[]> {
    if (eventTypeIds.length > maxEventTypesAtOnce)
      throw new PosthornError('INTERNAL', `more than ${maxEventTypesAtOnce} event types at once`);
    if (id !== undefined && parseWebhookId('subscription', id) === null) throw new PosthornError('INTERNAL', `${id} is no id of this kind`);
    const { org, endpointId } = template;
    const content = newSubscriptionContent(template, this.#clock.now());
    const json = encodeSubscription(content);
    const parts = eventTypeIds.map(() => id?.slice(webhookIdPrefixes.subscription.length) ?? newIdPart());
    const each = eventTypeIds.flatMap((eventTypeId, i) => [eventTypeId, id ?? '', parts[i] ?? '', json]);
    const args = [...idArguments('endpoint', endpointId), maxSubscriptionsOfEndpoint, mark, content.transformId ?? '', ...each];
    const reply = list(await this.#scripts.run('subscribe', org, args));
    if (reply[0] === 'made') return reply.slice(1).map((row) => subscriptionKind.row(org, row).object);
    const [outcome = '', , , application = '', applicationPart = '', ...numbers] = reply.map(text);
    switch (outcome) {
      case 'done':
        break;
      case 'missing':
        throw webhookNotFound(endpointKind);
      case 'gone':
        throw new PosthornError('RESOURCE_NOT_FOUND', 'There is no such event type.');
      case 'retired':
        throw transformRetired();
      case 'exists':
        throw idTaken(subscriptionKind);
      case 'full':
        throw new PosthornError('CONFLICT', `An endpoint has at most ${maxSubscriptionsOfEndpoint} subscriptions.`);
      default:
        throw new PosthornError('INTERNAL', `a script answered ${outcome}`);
    }
    const applicationId = webhookId('application', Number(application), applicationPart);
    return numbers.flatMap((number, i) => {
      if (number === '') return [];
      const own = webhookId('subscription', Number(number), parts[i] ?? '');
      return [{ id: own, org, endpointId, applicationId, eventTypeId: eventTypeIds[i] ?? '', ...content }];
    });
  }

  async #update<T extends { id: string; updatedAtMs: number; revision: number }>(
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
  async #replace<T extends { id: string; updatedAtMs: number; revision: number }>(
    kind: KindOfWebhooks<T>,
    replacement: WebhookReplacement<T>,
  ): Promise<T | null> {
    const { object, isChanged, carryOn } = await replaceWebhook({ scripts: this.#scripts, clock: this.#clock }, kind, replacement);
    if (object !== null && isChanged) await this.#note(kind, object);
    await carryOn?.();
    return object;
  }

  async #delete<T extends { id: string }>(kind: KindOfWebhooks<T>, org: string, id: string): Promise<void> {
    // What has nothing below it is removed in one step.
    const isAbove = kind.kind !== 'subscription';
    if (isAbove) await this.#sweeper.announce(org);
    await this.#note(kind, await removeWebhook(this.#scripts, kind, org, id));
    if (isAbove) await this.#sweeper.begin(org);
  }

  async #note<T extends { id: string }>({ kind, target }: KindOfWebhooks<T>, object: T): Promise<void> {
    const targets = target === undefined ? [] : [targetChange(target(object))];
    await this.#notes.note({ kind, id: object.id }, ...targets);
  }
}
