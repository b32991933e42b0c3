import { z } from 'zod';
import type { TaskKind } from '../tasks/task-kind.ts';

const input = z.object({
  jobId: z.string(),
  /** Generation of the resource. A record of an older generation does not have this setting yet. */
  generation: z.int(),
});

/** Result of a trigger, as the API returns it. */
export const triggeredExecution = z
  .object({
    id: z.string().describe('Id of the execution.'),
    status: z.enum(['success', 'failed']).describe('What became of it.'),
    responseStatus: z.int().nullable().describe('null when there was no answer.'),
    latencyMs: z.int().min(0).describe('Milliseconds that it took.'),
    error: z.string().optional().describe('Only of one that failed.'),
  })
  .meta({ id: 'TriggeredExecution' });

/** Runs a cron job now, and records it. */
export const cronRunTask: TaskKind<z.output<typeof input>, z.output<typeof triggeredExecution>> = {
  name: 'cron-run',
  input,
  result: triggeredExecution,
};
