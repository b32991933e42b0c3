import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { FacadeWorld, RequestOptions } from '../facade-world.ts';

/** What a cron job is made of, with any store behind the API. */
export function describeCronJobs(start: () => Promise<FacadeWorld>): void {
  let world: FacadeWorld;
  beforeAll(async () => {
    world = await start();
  });
  afterAll(() => world.stop());

  const iso = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  const wanted = { name: 'Report', cronExpression: '0 6 * * *', url: 'https://reports.example/run' };
  const cron = (method: string, path = '', options?: RequestOptions) => world.request(method, `/api/cron${path}`, options);
  async function made(body: object = {}): Promise<string> {
    const created = await cron('POST', '', { body: { ...wanted, ...body } });
    expect(created.status).toBe(201);
    return created.body.cronJob.id;
  }
  const read = async (id: string) => (await cron('GET', `/${id}`)).body.cronJob;

  describe('a cron job', () => {
    test('a cron job is created with its defaults, and the create answers the record with the next run in UTC', async () => {
      const created = await cron('POST', '', { body: wanted });
      expect(created.status).toBe(201);
      const job = await read(created.body.cronJob.id);
      expect(created.body).toEqual({ cronJob: { ...job, nextRunAt: expect.stringMatching(/^\d{4}-\d\d-\d\d 06:00:00$/) } });
      expect(job).toEqual({
        id: created.body.cronJob.id,
        organizationId: expect.stringMatching(/^org_/),
        slug: 'report',
        ...wanted,
        description: null,
        timezone: 'UTC',
        method: 'POST',
        headers: '{}',
        payload: null,
        timeoutMs: 30_000,
        useStaticIp: false,
        isActive: true,
        lastRunAt: null,
        lastRunStatus: null,
        nextRunAt: iso,
        createdAt: iso,
        updatedAt: iso,
      });
      expect(job.nextRunAt.slice(0, 19).replace('T', ' ')).toBe(created.body.cronJob.nextRunAt);
    });

    test('a cron job takes every field, and shows its headers as JSON text', async () => {
      const all = {
        description: 'For the morning',
        timezone: 'America/New_York',
        method: 'PUT',
        payload: '{"a":1}',
        timeoutMs: 60_000,
        useStaticIp: true,
      };
      const id = await made({ ...all, name: 'All', headers: { 'X-Shop': 'north', Authorization: 'Bearer a' } });
      const job = await read(id);
      expect(job).toMatchObject(all);
      expect(JSON.parse(job.headers)).toEqual({ 'X-Shop': 'north', Authorization: '••••' });
      // What was read can be sent back, and changes nothing.
      expect((await cron('PATCH', `/${id}`, { body: job })).body).toEqual({ success: true });
      expect(await read(id)).toEqual({ ...job, nextRunAt: iso });
    });

    test('a cron job is changed field by field; what is not sent stays', async () => {
      const id = await made({ name: 'Changed', headers: { a: '1' }, payload: 'p', description: 'd' });
      const before = await read(id);
      const changes = [
        { name: 'Changed again' },
        { description: null },
        { cronExpression: '*/5 1-3 * * 0,6' },
        { timezone: 'Asia/Tokyo' },
        { url: 'http://other.example/' },
        { method: 'DELETE' },
        { payload: null },
        { timeoutMs: 1000 },
        { useStaticIp: true },
      ];
      for (const change of changes) {
        const answer = await cron('PATCH', `/${id}`, { body: change });
        expect([answer.status, answer.body]).toEqual([200, { success: true }]);
      }
      await cron('PATCH', `/${id}`, { body: { headers: { b: '2' } } });
      expect(await read(id)).toEqual({
        ...before,
        ...Object.assign({}, ...changes),
        headers: '{"b":"2"}',
        nextRunAt: iso,
        updatedAt: iso,
      });
      await cron('PATCH', `/${id}`, { body: { isActive: false } });
      expect(await read(id)).toMatchObject({ isActive: false, nextRunAt: null, timezone: 'Asia/Tokyo' });
    });

    test('a cron job is listed by name, filtered by search and isActive, and read by its slug under the path of its organization', async () => {
      const [first, second] = [await made({ name: 'Zebra list' }), await made({ name: 'Apple list', url: 'https://apple.example/' })];
      await cron('PATCH', `/${first}`, { body: { isActive: false } });
      const listed = (await cron('GET', '?search=list')).body.cronJobs;
      expect(listed).toEqual([
        {
          id: second,
          organizationId: expect.stringMatching(/^org_/),
          description: null,
          timezone: 'UTC',
          timeoutMs: 30_000,
          useStaticIp: false,
          createdAt: iso,
          updatedAt: iso,
          name: 'Apple list',
          slug: 'apple-list',
          cronExpression: '0 6 * * *',
          url: 'https://apple.example/',
          method: 'POST',
          isActive: true,
          lastRunAt: null,
          lastRunStatus: null,
          nextRunAt: iso,
        },
        expect.objectContaining({ id: first, isActive: false, nextRunAt: null }),
      ]);
      expect((await cron('GET', '?search=apple.EXAMPLE')).body.cronJobs).toHaveLength(1);
      expect((await cron('GET', '?search=list&isActive=false')).body.cronJobs).toEqual([expect.objectContaining({ id: first })]);
      expect((await world.request('GET', '/api/organizations/acme/cron/apple-list')).body.cronJob.id).toBe(second);
    });
  });

  describe('the schedule', () => {
    const schedule = async (query: string) => (await world.request('GET', `/api/cron-schedule${query}`)).body;
    const inYears = new Date().getUTCFullYear() + 1;

    test('the schedule has the next ten runs of one job, in its time zone and over the change of its clocks', async () => {
      const id = await made({ name: 'Berlin', cronExpression: '30 6 * * 1-5', timezone: 'Europe/Berlin' });
      const { jobs } = await schedule(`?cronJobId=${id}&from=2098-03-26`);
      expect(jobs).toEqual([
        {
          id,
          name: 'Berlin',
          cronExpression: '30 6 * * 1-5',
          timezone: 'Europe/Berlin',
          runs: ['26T05', '27T05', '28T05', '31T04']
            .map((at) => `2098-03-${at}:30:00.000Z`)
            .concat(['01', '02', '03', '04', '07', '08'].map((day) => `2098-04-${day}T04:30:00.000Z`)),
          hasMore: true,
        },
      ]);
    });

    test('the schedule finds the only run of a job of a leap day without being told for how long', async () => {
      const id = await made({ name: 'Leap', cronExpression: '0 0 29 2 *' });
      const { jobs } = await schedule(`?cronJobId=${id}`);
      expect(jobs).toEqual([
        expect.objectContaining({ id, runs: expect.arrayContaining([expect.stringMatching(/-02-29T00:00:00.000Z$/)]) }),
      ]);
    });

    test('the schedule has the runs of all active jobs of the days that are requested, of each at most as many as requested', async () => {
      const [often, daily, off] = [
        await made({ name: 'Sched often', cronExpression: '* * * * *' }),
        await made({ name: 'Sched daily', cronExpression: '0 7 * * *' }),
        await made({ name: 'Sched off', cronExpression: '0 8 * * *', isActive: false }),
      ];
      const { from, to, jobs } = await schedule(`?from=${inYears}-06-01&to=${inYears}-06-02&perJob=3`);
      expect([from, to]).toEqual([`${inYears}-06-01T00:00:00.000Z`, `${inYears}-06-02T23:59:59.999Z`]);
      const ofJob = (id: string) => jobs.find((job: { id: string }) => job.id === id);
      expect(ofJob(often)).toMatchObject({
        hasMore: true,
        runs: ['01', '02', '03'].map((minute) => `${inYears}-06-01T00:${minute}:00.000Z`),
      });
      expect(ofJob(daily)).toMatchObject({ hasMore: false, runs: ['01', '02'].map((day) => `${inYears}-06-${day}T07:00:00.000Z`) });
      expect(ofJob(off)).toBeUndefined();
      expect(jobs.map(({ name }: { name: string }) => name)).toEqual(jobs.map(({ name }: { name: string }) => name).toSorted());
    });

    test('the schedule ends before the first run that does not fit into the answer, and says when', async () => {
      for (let i = 0; i < 11; i++) await made({ name: `Many ${i}`, cronExpression: `${i} * * * *` });
      const { to, jobs } = await schedule(`?from=${inYears}-07-01&to=${inYears}-07-03&perJob=50`);
      expect(jobs.flatMap(({ runs }: { runs: string[] }) => runs).length).toBeLessThan(600);
      expect(jobs.flatMap(({ runs }: { runs: string[] }) => runs).every((at: string) => at <= to)).toBe(true);
      expect(to < `${inYears}-07-03`).toBe(true);
    });

    test('the schedule has all runs of the time at which it ends, so that the next answer continues behind it', async () => {
      for (let i = 0; i < 40; i++) await made({ name: `Tied ${i}`, cronExpression: '0 0 * * *' });
      const whole = await schedule(`?from=${inYears}-08-01&to=${inYears}-08-20&perJob=50`);
      const tied = ({ jobs }: { jobs: { name: string; runs: string[] }[] }) => jobs.filter(({ name }) => name.startsWith('Tied'));
      expect(whole.to < `${inYears}-08-20`).toBe(true);
      expect(tied(whole)).toHaveLength(40);
      expect(new Set(tied(whole).map(({ runs }) => runs.join())).size).toBe(1);
      expect(tied(whole)[0]?.runs.every((at) => at <= whole.to)).toBe(true);
      const after = await schedule(`?from=${whole.to}&to=${inYears}-08-20&perJob=50`);
      expect(tied(after)[0]?.runs[0]?.localeCompare(whole.to)).toBe(1);
    });

    test('nothing is planned for the past, and a span that ends before it begins or never ends is refused', async () => {
      const id = await made({ name: 'Now', cronExpression: '* * * * *' });
      const { jobs } = await schedule(`?cronJobId=${id}&from=2020-01-01&perJob=1`);
      expect(Date.parse(jobs[0].runs[0])).toBeGreaterThan(Date.now() - 60_000);
      for (const query of [
        '?to=2020-01-01',
        '?from=2099-01-02&to=2099-01-01',
        '?from=2030-01-01&to=2090-01-01',
        '?perJob=51',
        '?from=soon',
      ])
        expect([query, (await world.request('GET', `/api/cron-schedule${query}`)).status]).toEqual([query, 400]);
    });
  });
}
