import { z } from 'zod';
import { compileCelFilter } from '../../../../core/cel-filter.ts';
import { PosthornError } from '../../../../core/errors.ts';
import { changedSubscription } from '../../../../data/webhooks/webhook-changes.ts';
import type { WebhookSubscription } from '../../../../data/webhooks/webhooks.ts';
import { text } from '../../../../resources/text.ts';
import { type Call, type Family, operation } from '../../../http/operation.ts';
import { cursorPageOf, cursorPagination, cursorQuery, pagesAreFilled, unknownIds } from '../../../http/pagination.ts';
import { queryBoolean } from '../../../http/query.ts';
import { mapConcurrently } from '../../../records/concurrently.ts';
import { filterId } from '../../../records/filter-ids.ts';
import { declaredId, idOf, resolve } from '../../../records/lookup.ts';
import { atVersion, changeVersioned, tagged } from '../../../records/record-versions.ts';
import { deleted, isDeleted, single } from '../../shared/envelope.ts';
import { eventTypeKey, namedEventType } from '../event-types/event-type-lookup.ts';
import { isManagedAsDesired, refuseManaged } from '../shared/managed.ts';
import { bulkSubscriptionBody, newSubscriptionBody, subscriptionChangeBody } from './subscription-fields.ts';
import { subscriptionRecord, subscriptionRecords, toSubscription } from './subscription-record.ts';
import { testSubscription } from './subscription-test.ts';

const readOnly = Object.keys(subscriptionRecord.shape).filter((field) => !(field in newSubscriptionBody.shape));
const id = text(1, 128);
const endpointExample = 'ep_mzxw6ytboi4dsnrrgq3tkojqge';

export const webhookSubscriptions: Family = {
  name: 'Webhook subscriptions',
  noun: 'subscription',
  description: 'Which event types are sent to which endpoint, and which of their events.',
  shown: {
    filterExpression: 'event.data.total > 100.0',
    labelFilters: { region: ['eu', 'us'] },
    labelFilterMode: 'all',
    transformId: null,
    lastFilterError: null,
    eventTypeName: 'order.paid',
    eventTypeDisplayName: 'Order paid',
    applicationName: 'Acme Corporation',
    created: 1,
    skipped: 0,
  },
  operations: [
    operation({
      method: 'GET',
      path: '/webhook-subscriptions',
      operationId: 'listWebhookSubscriptions',
      summary: 'List subscriptions',
      description: `${pagesAreFilled} ${unknownIds}`,
      scope: 'read',
      query: z.object({
        endpointId: id.optional().describe('Only of this endpoint.'),
        eventTypeId: id.optional().describe('Id or name.'),
        applicationId: id.optional().describe('Only of this application.'),
        isEnabled: queryBoolean.optional().describe('Only those that are enabled, or not.'),
        ...cursorQuery,
      }),
      answer: { status: 200, description: 'Newest first.', schema: cursorPageOf(subscriptionRecord) },
      errors: ['RESOURCE_NOT_FOUND'],
      handle: async (call) => {
        const { limit, cursor, isEnabled, ...ids } = call.query;
        const filter = {
          isEnabled,
          eventTypeId: await filterId(call, 'WebhookEventType', ids.eventTypeId && eventTypeKey(ids.eventTypeId)),
          applicationId: await filterId(call, 'WebhookApplication', ids.applicationId),
          endpointId: await filterId(call, 'WebhookEndpoint', ids.endpointId),
        };
        const { items, nextCursor } = await call.services.webhooks.subscriptions(call.caller.organization.id, filter, { limit, cursor });
        return { data: await subscriptionRecords(items, call), pagination: cursorPagination(nextCursor) };
      },
    }),
    operation({
      method: 'POST',
      path: '/webhook-subscriptions',
      operationId: 'createWebhookSubscription',
      noun: 'endpoint',
      summary: 'Subscribe an endpoint to an event type',
      description: 'An endpoint subscribes to an event type once; a second time is 409 `Duplicate subscription`.',
      scope: 'write',
      body: newSubscriptionBody,
      readOnly,
      requestExample: {
        endpointId: endpointExample,
        eventTypeId: 'order.paid',
        filterExpression: 'event.data.total > 100.0',
        labelFilters: { region: ['eu', 'us'] },
      },
      answer: { status: 201, description: 'The new subscription.', schema: single(subscriptionRecord) },
      errors: ['RESOURCE_NOT_FOUND', 'CONFLICT'],
      handle: async (call) => {
        const { endpointId, eventTypeId, ...rest } = call.body;
        const settings = await checkedSettings(call, rest);
        const eventType = await namedEventType(call, eventTypeId);
        const wanted = { org: call.caller.organization.id, mark: call.idempotency?.mark, endpointId, eventTypeId: idOf(eventType) };
        return toSubscription(await call.services.webhooks.createSubscription({ ...wanted, ...settings }), call);
      },
    }),
    operation({
      method: 'POST',
      path: '/webhook-subscriptions/bulk',
      operationId: 'createWebhookSubscriptions',
      noun: 'endpoint',
      summary: 'Subscribe an endpoint to several event types',
      description: 'Event types that it subscribes to already are skipped. When one does not exist, none is created.',
      scope: 'write',
      body: bulkSubscriptionBody,
      requestExample: { endpointId: endpointExample, eventTypeIds: ['order.paid'] },
      answer: {
        status: 201,
        description: 'What was made.',
        schema: z.object({
          created: z.int().min(0).describe('How many.'),
          skipped: z.int().min(0).describe('How many were there already.'),
          subscriptions: z.array(subscriptionRecord).describe('Those that were made.'),
        }),
      },
      errors: ['RESOURCE_NOT_FOUND', 'CONFLICT'],
      handle: async (call) => {
        const { endpointId, eventTypeIds, ...settings } = call.body;
        const eventTypes = await mapConcurrently(eventTypeIds, (each) => namedEventType(call, each));
        const ids = [...new Set(eventTypes.map(idOf))];
        const template = { org: call.caller.organization.id, mark: call.idempotency?.mark, endpointId, ...settings };
        const { created, skipped } = await call.services.webhooks.createSubscriptions(template, ids);
        const subscriptions = await subscriptionRecords(created, call);
        return { created: created.length, skipped: skipped + eventTypeIds.length - ids.length, subscriptions };
      },
    }),
    testSubscription,
    operation({
      method: 'GET',
      path: '/webhook-subscriptions/{id}',
      operationId: 'getWebhookSubscription',
      summary: 'Read a subscription',
      scope: 'read',
      answer: { status: 200, description: 'The subscription.', schema: single(subscriptionRecord) },
      errors: ['RESOURCE_NOT_FOUND'],
      isVersioned: true,
      handle: async (call) => toSubscription(tagged(call, await findSubscription(call)), call),
    }),
    operation({
      method: 'PATCH',
      path: '/webhook-subscriptions/{id}',
      operationId: 'updateWebhookSubscription',
      summary: 'Change a subscription',
      description: 'Fields that are not sent stay unchanged; null removes the filter or the transform.',
      scope: 'write',
      body: subscriptionChangeBody,
      readOnly,
      requestExample: { labelFilters: { region: 'eu' }, isEnabled: false },
      answer: { status: 200, description: 'The changed subscription.', schema: single(subscriptionRecord) },
      errors: ['RESOURCE_NOT_FOUND', 'FIELD_MANAGED', 'CONFLICT'],
      isVersioned: true,
      handle: async (call) => {
        const current = await findSubscription(call);
        const { endpointId, eventTypeId, ...rest } = call.body;
        refuseOther('endpointId', endpointId, current.endpointId);
        if (eventTypeId !== undefined && eventTypeId !== current.eventTypeId) {
          refuseOther('eventTypeId', idOf(await namedEventType(call, eventTypeId)), current.eventTypeId);
        }
        const change = await checkedSettings(call, rest, current);
        const isAsWanted = isManagedAsDesired('subscription', current, changedSubscription(current, change));
        const changed = await changeVersioned(call, 'subscription', current, async (revision) =>
          isAsWanted ? current : await call.services.webhooks.updateSubscription(current.org, current.id, change, revision),
        );
        return toSubscription(changed, call);
      },
    }),
    operation({
      method: 'DELETE',
      path: '/webhook-subscriptions/{id}',
      operationId: 'deleteWebhookSubscription',
      summary: 'Delete a subscription',
      scope: 'delete',
      answer: { status: 200, description: 'It is deleted.', schema: deleted },
      errors: ['RESOURCE_NOT_FOUND', 'FIELD_MANAGED'],
      isVersioned: true,
      handle: async (call) => {
        const current = await findSubscription(call);
        refuseManaged('subscription', current);
        await atVersion(call, 'subscription', current, (revision) =>
          call.services.webhooks.deleteSubscription(current.org, current.id, revision),
        );
        return isDeleted;
      },
    }),
  ],
};

async function findSubscription(call: Call): Promise<WebhookSubscription> {
  const id = await declaredId(call, 'WebhookSubscription', call.params['id'] ?? '');
  const found = await call.services.webhooks.subscription(call.caller.organization.id, id);
  if (found === null) throw new PosthornError('RESOURCE_NOT_FOUND', 'There is no such subscription.');
  return found;
}

type Settings = Omit<z.output<typeof subscriptionChangeBody>, 'endpointId' | 'eventTypeId'>;

/** With a filter that compiles and the id of the transform. VALIDATION_FAILED otherwise. */
async function checkedSettings(call: Call, sent: Settings, current?: WebhookSubscription): Promise<Settings> {
  const { filterExpression, transformId } = sent;
  if (typeof filterExpression === 'string') compileCelFilter(filterExpression);
  if (typeof transformId !== 'string' || transformId === current?.transformId) return sent;
  const transform = await resolve(call, 'Transform', transformId);
  if (transform !== null) return { ...sent, transformId: idOf(transform) };
  const details = { transformId: [`there is no transform "${transformId}"`] };
  throw new PosthornError('VALIDATION_FAILED', `transformId: there is no transform "${transformId}".`, { details });
}

function refuseOther(field: string, sent: string | undefined, current: string): void {
  if (sent === undefined || sent === current) return;
  throw new PosthornError('VALIDATION_FAILED', `${field} cannot be changed.`, { details: { [field]: ['cannot be changed'] } });
}
