/**
 * Keys of cron jobs.
 *
 * In one slot, what is scheduled:
 * - `<prefix>{cron}:slots` hash: job → `<slot> <revision>`, the last slot that was claimed, or when the job was first seen so
 * - `last` hash: job → last slot that was given to the workers, or to its run that waits for one; `ran` hash: job → start of its last run (both ms)
 * - `ready` list of organizations with runs that wait, `q:<org>` list of these runs, `waiting` hash: job → its run there
 * - `runs` hash: run → its text, while a worker has it; `held` sorted set of them by the time when the worker counts as lost
 * - `bell` list, the doorbell of the workers; it and `ready` of another pool than the default one end with its suffix (`pool-suffix.ts`)
 * - `pools` hash: organization → suffix of its pool, when that is another one; `take:<token>` list, the result of one call of `cron-take.lua`
 * - `turn` string: holder of the leadership lock
 *
 * In a slot of its own for each job, its history: `<prefix>{cron:<job>}:order` sorted set of executions by start, `entries` hash
 * of them, `bodies` hash of the response bodies of the newest ones, `gone`: the job is deleted, nothing may be written any more.
 */
export function cronKeys(prefix: string) {
  const base = `${prefix}{cron}:`;
  return {
    base,
    slots: `${base}slots`,
    last: `${base}last`,
    ran: `${base}ran`,
    ready: `${base}ready`,
    waiting: `${base}waiting`,
    runs: `${base}runs`,
    held: `${base}held`,
    bell: `${base}bell`,
    pools: `${base}pools`,
    turn: `${base}turn`,
    take: (token: string) => `${base}take:${token}`,
  };
}

export function executionKeys(prefix: string, jobId: string) {
  const base = `${prefix}{cron:${jobId}}:`;
  return { order: `${base}order`, entries: `${base}entries`, bodies: `${base}bodies`, gone: `${base}gone` };
}

/** The longest sleep on the doorbell, in seconds. */
export const cronBlockSeconds = 30;
