import { z } from 'zod';
import { parsePlainJson } from '../../../core/plain-json.ts';
import type { WarehouseLayout } from '../../../core/records.ts';

const layout = z.object({ prefix: z.string(), fileFormat: z.enum(['jsonl', 'json']), partitionBy: z.enum(['date', 'hour', 'source']) });

/**
 * A batch keeps the layout that was in force when it was formed: a repeat after a change of the destination must not write the same
 * records under another key.
 */
export function layoutText({ prefix, fileFormat, partitionBy }: WarehouseLayout): string {
  return JSON.stringify({ prefix, fileFormat, partitionBy });
}

/** Reads the text that `layoutText` returns. Throws if it is no layout. */
export function readLayout(text: string): WarehouseLayout {
  return layout.parse(parsePlainJson(text));
}
