import { describe, expect, test } from '@jest/globals';
import { storedObject } from '../../test/support/objects.ts';
import type { SpecInputOf } from '../resources/kinds.ts';
import { compileCronJob } from './cron-job.ts';
import type { OrganizationFacts } from './organization.ts';

const organization: OrganizationFacts = { id: 'org_a', slug: 'acme', namespace: 'acme', plan: 'free', payloadLimitBytes: 1 };
const compiled = (spec: Partial<SpecInputOf<'HttpCronJob'>>, plan: OrganizationFacts['plan'] = 'free') =>
  compileCronJob(storedObject('HttpCronJob', 'report', { schedule: '0 6 * * *', url: 'https://a.example/', ...spec }, 'acme'), {
    ...organization,
    plan,
  });

describe('an HttpCronJob', () => {
  test('becomes a record with all defaults', () => {
    expect(compiled({}).record).toMatchObject({
      id: expect.stringMatching(/^cron_/),
      org: 'org_a',
      slug: 'report',
      enabled: true,
      schedule: '0 6 * * *',
      timeZone: 'UTC',
      http: { url: 'https://a.example/', method: 'POST', headers: [], payload: '', timeoutMs: 30_000, useStaticIp: false },
    });
  });

  test.each<[string, Partial<SpecInputOf<'HttpCronJob'>>, string]>([
    ['a day that no month has', { schedule: '0 0 30 2 *' }, 'InvalidSchedule'],
    ['a zone that nobody knows', { timeZone: 'Mars/Olympus' }, 'InvalidTimeZone'],
  ])('with %s is refused', (_, spec, reason) => {
    expect(compiled(spec).refusal?.reason).toBe(reason);
  });

  test('has a static address on a paid plan, and is suspended with one on the free plan', () => {
    const paid = compiled({ useStaticIp: true }, 'starter');
    expect(paid).toMatchObject({ record: { enabled: true, http: { useStaticIp: true } } });
    expect(paid).not.toHaveProperty('refusal');
    expect(compiled({ useStaticIp: true })).toEqual({
      record: { ...paid.record, id: expect.any(String), enabled: false },
      refusal: { reason: 'PlanTooLow', message: 'useStaticIp needs a paid plan; this organization has free' },
    });
  });
});
