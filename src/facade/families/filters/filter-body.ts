import { z } from 'zod';
import { filterCondition, filterLogic } from '../../../resources/filter-conditions.ts';
import { specField } from '../../records/spec-field.ts';

/** A condition as bodies and records have it. */
export const conditionField = filterCondition.meta({ id: 'FilterCondition', description: 'What a field of the event must be.' });

/** The conditions of a filter, as they are sent. */
export const filterBody = {
  conditions: z.array(conditionField).min(1).max(50).optional().describe('What events must be.'),
  logic: specField(filterLogic),
};
