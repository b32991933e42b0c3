import { z } from 'zod';
import type { DeliveryStatus } from '../../../data/shard/messages.ts';
import { operation } from '../../http/operation.ts';
import { filterIds } from '../../records/filter-ids.ts';
import {
  cancelBody,
  cancelByFilter,
  cancelCounts,
  cancelDescription,
  cancelFilterFields,
  cancelFor,
  cancelledByFilter,
  cancelledStatus,
  cancelOne,
  cancelResult,
  countsOf,
  sharedFilterOf,
} from '../shared/cancel.ts';
import { sentNames } from '../shared/sent-filter.ts';

const waiting = ['pending', 'retrying', 'circuit_open', 'processing'] as const satisfies readonly DeliveryStatus[];
const defaultStatuses = waiting.slice(0, 3);

const filter = z
  .strictObject({
    status: z.array(z.enum(waiting)).min(1).max(waiting.length).describe('Statuses. Default: all but processing.'),
    routeId: sentNames.describe('Ids or slugs of routes.'),
    destinationId: sentNames.describe('Ids or slugs of destinations.'),
    ...cancelFilterFields,
  })
  .partial()
  .meta({ id: 'DeliveryCancelFilter', description: 'The filters of the list of deliveries, of those that have not ended.' });

export const cancelDeliveries = [
  operation({
    method: 'POST',
    path: '/deliveries/{id}/cancel',
    operationId: 'cancelDelivery',
    summary: 'Cancel a delivery',
    description: `${cancelDescription} Its deadLetterReason is \`cancelled\`. One that was cancelled before has the same response.`,
    scope: 'write',
    answer: {
      status: 200,
      description: 'It is cancelled.',
      schema: z.object({
        deliveryId: z.string().describe('Id of the delivery.'),
        status: cancelledStatus,
        message: z.string().describe('The same in words.'),
      }),
      example: { deliveryId: 'msg_00m2k3x7q4uabcdefghijklmnop', status: 'cancelled', message: 'The delivery is cancelled.' },
    },
    errors: ['RESOURCE_NOT_FOUND', 'CONFLICT'],
    handle: async (call) => {
      const { id: deliveryId = '' } = call.params;
      const status = await cancelOne(call, call.caller.organization.id, deliveryId, 'delivery');
      const message =
        status === 'cancelled' ? 'The delivery is cancelled.' : 'The delivery is cancelled unless the attempt that is under way succeeds.';
      return { deliveryId, status, message };
    },
  }),
  operation({
    method: 'POST',
    path: '/deliveries/bulk-cancel',
    operationId: 'cancelDeliveries',
    summary: 'Cancel deliveries by id',
    description: `Each of them. ${cancelDescription} May be sent again.`,
    scope: 'write',
    isScan: true,
    body: z.strictObject({ ids: z.array(z.string().min(1).max(128)).min(1).max(100).describe('Ids of deliveries.') }),
    requestExample: { ids: ['msg_00m2k3x7q4uabcdefghijklmnop'] },
    answer: {
      status: 200,
      description: 'What became of each.',
      schema: z.object({
        ...cancelCounts,
        deliveries: z
          .array(z.object({ deliveryId: z.string().describe('Id of the delivery.'), result: cancelResult }))
          .describe('In the order of the ids.'),
      }),
    },
    handle: async (call) => {
      const results = await cancelFor(call, call.caller.organization.id, call.body.ids);
      return { ...countsOf(results.values()), deliveries: [...results].map(([deliveryId, result]) => ({ deliveryId, result })) };
    },
  }),
  operation({
    method: 'POST',
    path: '/deliveries/cancel',
    operationId: 'cancelDeliveriesByFilter',
    summary: 'Cancel deliveries by filter',
    description: `${cancelDescription} One request cancels up to 500: \`nextCursor\` leads on. May be sent again.`,
    scope: 'write',
    isScan: true,
    body: cancelBody(filter),
    requestExample: { filter: { responseStatus: ['5xx'] }, dryRun: true },
    answer: { status: 200, description: 'What this request did.', schema: cancelledByFilter },
    errors: ['RESOURCE_NOT_FOUND'],
    handle: async (call) => {
      const { id: org } = call.caller.organization;
      const { status = defaultStatuses, routeId, destinationId, ...sent } = call.body.filter;
      const shared = sharedFilterOf(sent);
      const narrow = {
        routeId: await filterIds(call, 'Route', routeId),
        destinationId: await filterIds(call, 'Destination', destinationId),
        statuses: status,
      };
      return await cancelByFilter(call, {
        org,
        narrow: ['deliveries', narrow],
        shared,
        list: (filter, page) => call.services.messages.deliveries(org, { ...filter, ...narrow }, page),
      });
    },
  }),
];
