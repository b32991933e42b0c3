const dayMs = 86_400_000;

/** The seven days from one on, as `YYYY-MM-DD`. */
export function weekFrom(day: string): string[] {
  return Array.from({ length: 7 }, (_, i) => dayAfter(day, i));
}

/** The day that is `days` later, or earlier. */
export function dayAfter(day: string, days: number): string {
  return new Date(Date.parse(day) + days * dayMs).toISOString().slice(0, 10);
}

export function isDay(text: string | undefined): text is string {
  return text !== undefined && /^[0-8]\d{3}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text)) && dayAfter(text, 0) === text;
}

export interface DayRun<Job> {
  job: Job;
  at: string;
}

/** The runs of each day in the order of time; `dayOf` gives the day of a time in the zone of the reader. */
export function runsByDay<Job extends { runs: readonly string[] }>(
  jobs: readonly Job[],
  dayOf: (at: string) => string,
): Map<string, DayRun<Job>[]> {
  const runs = jobs.flatMap((job) => job.runs.map((at) => ({ job, at }))).sort((one, other) => (one.at < other.at ? -1 : 1));
  return Map.groupBy(runs, ({ at }) => dayOf(at));
}

/** The times of a job have no zone in the API; they are in UTC. */
export function utc(at: string): string {
  return at.includes('T') ? at : `${at.replace(' ', 'T')}Z`;
}
