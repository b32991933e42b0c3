import { z } from 'zod';

/** Envelope of a single record of the webhook subscription API. */
export function single<Record extends z.ZodType>(record: Record) {
  return z.object({ data: record.describe('The record.') });
}

/** Body of the response to a deletion in the webhook subscription API. */
export const deleted = z.object({ success: z.literal(true).describe('It is done.') }).meta({ id: 'Success' });
export const isDeleted: z.input<typeof deleted> = { success: true };
