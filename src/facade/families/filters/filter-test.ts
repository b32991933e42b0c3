import { z } from 'zod';
import { PosthornError } from '../../../core/errors.ts';
import { tryFilter } from '../../../core/filter-evaluation.ts';
import type { FilterDefinition } from '../../../core/records.ts';
import { queryParameters } from '../../../core/sent-query.ts';
import { type Call, operation } from '../../http/operation.ts';
import { findContent } from '../../records/object-sharing.ts';
import { idOrSlug } from '../../records/record-fields.ts';
import { inApiWords } from '../../records/store-errors.ts';
import { sampleEvent, sampleHeaders, samplePayload } from '../shared/sample-event.ts';
import { filterBody } from './filter-body.ts';

const body = z.strictObject({
  filterId: idOrSlug.optional().describe('Id or slug of a filter; or conditions.'),
  conditions: filterBody.conditions,
  logic: filterBody.logic,
  ...sampleEvent,
});

const conditionResult = z
  .object({
    field: z.string().describe('The field.'),
    operator: z.string().describe('The operator.'),
    matches: z.boolean().describe('Whether the event meets it.'),
  })
  .meta({ id: 'JudgedCondition', description: 'A condition, and whether the event meets it.' });

/** Whether an event would meet a filter, and each of its conditions. */
export const filterTestOperation = operation({
  method: 'POST',
  path: '/filters/test',
  operationId: 'testFilter',
  summary: 'Try a filter on a sample event',
  scope: 'read',
  body,
  freeField: 'payload',
  requestExample: {
    conditions: [{ field: 'payload.amount', operator: 'gte', value: 1000 }],
    payload: { amount: 1500 },
    headers: { 'X-Kind': 'order' },
  },
  answer: {
    status: 200,
    description: 'Whether a route with the filter would take the event.',
    schema: z.object({
      success: z.literal(true).describe('The filter was tried.'),
      matches: z.boolean().describe('Whether the event meets it.'),
      conditions: z.array(conditionResult).describe('Each condition.'),
      results: z.array(conditionResult).describe('The same as conditions.'),
      logic: z.enum(['AND', 'OR']).describe('Whether all conditions must hold or one.'),
    }),
  },
  errors: ['RESOURCE_NOT_FOUND'],
  handle: async (call) => {
    const definition = await filterOf(call);
    const context = {
      payload: samplePayload(call.body),
      headers: Object.fromEntries(sampleHeaders(call.body)),
      query: queryParameters(call.body.query ?? ''),
    };
    const { isMet, met } = await call.turn.run(
      inApiWords('Filter', () => tryFilter(definition, context)),
      call.signal,
    );
    const conditions = definition.conditions.map(({ field, operator }, index) => ({ field, operator, matches: met[index] ?? false }));
    return { success: true, matches: isMet, conditions, results: conditions, logic: definition.logic };
  },
});

async function filterOf(call: Call<unknown, z.output<typeof body>>): Promise<FilterDefinition> {
  const { filterId, conditions, logic } = call.body;
  if ((filterId === undefined) === (conditions === undefined))
    throw new PosthornError('VALIDATION_FAILED', 'Send either filterId or conditions.');
  if (filterId !== undefined && logic !== undefined)
    throw new PosthornError('VALIDATION_FAILED', 'logic is valid only with conditions: a stored filter has its own.');
  if (conditions !== undefined) return { conditions, logic: logic ?? 'AND' };
  return await findContent(call, 'Filter', filterId ?? '');
}
