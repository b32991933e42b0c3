import { z } from 'zod';
import { filterCondition } from '../../resources/filter-conditions.ts';

/** The conditions of a filter, as they are sent. */
export const filterBody = {
  conditions: z.array(filterCondition).min(1).max(50).optional(),
  logic: z.enum(['AND', 'OR']).optional(),
};
