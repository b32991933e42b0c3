import { z } from 'zod';

/** A single record (API document, "Resources and their fields"). */
export function single<Record extends z.ZodType>(record: Record) {
  return z.object({ data: record.describe('The record.') });
}

/** What a deletion answers (API decisions, "Family B"). */
export const deleted = z.object({ success: z.literal(true).describe('It is done.') }).meta({ id: 'Success' });
export const isDeleted: z.input<typeof deleted> = { success: true };
