import { z } from 'zod';
import { PosthornError } from '../../core/errors.ts';
import { type Family, operation } from '../operation.ts';
import { cursorPageOf, cursorPagination, cursorQuery } from '../pagination.ts';
import { timeRange, timeRangeQuery } from '../query.ts';
import { idFor } from '../resources/lookup.ts';
import { attemptRecord, attemptToRecord, deliveryRecord, deliveryStatus, deliveryToRecord } from './delivery-fields.ts';

const idOrSlug = z.string().min(1).max(128);

export const deliveries: Family = {
  name: 'Deliveries',
  description: 'What became of each event at each destination.',
  operations: [
    operation({
      method: 'GET',
      path: '/deliveries',
      operationId: 'listDeliveries',
      summary: 'List deliveries',
      scope: 'read',
      query: z.object({
        ...cursorQuery,
        routeId: idOrSlug.optional(),
        destinationId: idOrSlug.optional(),
        status: deliveryStatus.optional(),
        ...timeRangeQuery,
      }),
      answer: { status: 200, description: 'Newest first.', schema: cursorPageOf(deliveryRecord) },
      handle: async (call) => {
        const { limit, cursor, routeId, destinationId, status, from, to } = call.query;
        const filter = {
          routeId: await idFor(call, 'Route', routeId),
          destinationId: await idFor(call, 'Destination', destinationId),
          status,
          ...timeRange(from, to),
        };
        const { items, nextCursor } = await call.services.messages.deliveries(call.caller.organization.id, filter, { limit, cursor });
        return { data: items.map(deliveryToRecord), pagination: cursorPagination(nextCursor) };
      },
    }),
    operation({
      method: 'GET',
      path: '/deliveries/{id}',
      operationId: 'getDelivery',
      summary: 'Read a delivery with its attempts',
      scope: 'read',
      answer: { status: 200, description: 'The delivery.', schema: deliveryRecord.extend({ attemptDetails: z.array(attemptRecord) }) },
      errors: ['RESOURCE_NOT_FOUND'],
      handle: async ({ services, caller, params: { id = '' } }) => {
        const { id: organization } = caller.organization;
        const delivery = await services.messages.delivery(organization, id);
        if (delivery === null) throw new PosthornError('RESOURCE_NOT_FOUND', 'There is no such delivery.');
        const attempts = await services.messages.attempts(organization, id);
        return { ...deliveryToRecord(delivery), attemptDetails: attempts.map(attemptToRecord) };
      },
    }),
  ],
};
