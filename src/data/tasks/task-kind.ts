import type { z } from 'zod';

/**
 * Work that a process without a way out delegates to a delivery worker: its name, its input and its output. Both are JSON, and
 * neither may hold a secret: a worker reads secrets from the published records, by id.
 */
export interface TaskKind<Input, Result> {
  /** Such as `channel-test`. Identifies one form of input: API and workers may be of different releases, and a worker reports an unknown kind. */
  name: string;
  input: z.ZodType<Input>;
  result: z.ZodType<Result>;
}

/**
 * Keys of the tasks; they share one slot.
 *
 * - `<prefix>{tasks}:q` list of the ids that wait, `bell` list, the doorbell of the workers; of another pool than the default one they end with its
 *   suffix (`pool-suffix.ts`)
 * - `pools` hash: organization → suffix of its pool, when that is another one
 * - `t:<task>` string, the task until it is answered; lives until its deadline
 * - `o:<org>` sorted set of the organization's open tasks by deadline
 * - `take:<token>` string, the task that one call of `task-take.lua` gave out
 * - `a:<caller>` list of answers for one process
 */
export function taskKeys(prefix: string) {
  const base = `${prefix}{tasks}:`;
  return {
    base,
    queue: `${base}q`,
    bell: `${base}bell`,
    pools: `${base}pools`,
    task: (id: string) => `${base}t:${id}`,
    organization: (org: string) => `${base}o:${org}`,
    take: (token: string) => `${base}take:${token}`,
    answers: (caller: string) => `${base}a:${caller}`,
  };
}

/** Open tasks of one organization; those beyond are refused. One credential has eight of them while it is alone (`task-offer.lua`). */
export const maxTasksOfOrganization = 10;

/** The longest sleep of the readers of doorbell and answers, in seconds. */
export const taskBlockSeconds = 30;
