import { randomBytes } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { storedObject } from '../../test/support/objects.ts';
import { Keyring } from '../core/sealing.ts';
import { recordSealingContext } from '../core/sealing-contexts.ts';
import type { SpecInputOf } from '../resources/kinds.ts';
import { compileCronJob } from './cron-job.ts';
import type { HeaderInput } from './headers.ts';
import type { OrganizationFacts } from './organization.ts';

const organization: OrganizationFacts = { id: 'org_a', slug: 'acme', namespace: 'acme', plan: 'free', payloadLimitBytes: 1 };
const keyring = new Keyring([{ id: 'k1', key: randomBytes(32) }]);
const compiled = (
  spec: Partial<SpecInputOf<'HttpCronJob'>>,
  plan: OrganizationFacts['plan'] = 'free',
  headers: readonly HeaderInput[] = [],
) =>
  compileCronJob(storedObject('HttpCronJob', 'report', { schedule: '0 6 * * *', url: 'https://a.example/', ...spec }, 'acme'), {
    organization: { ...organization, plan },
    headers,
    keyring,
    published: null,
  });

describe('an HttpCronJob', () => {
  test('an HttpCronJob becomes a record with all defaults', () => {
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
  ])('an HttpCronJob with %s is refused', (_, spec, reason) => {
    expect(compiled(spec).refusal?.reason).toBe(reason);
  });

  test('an HttpCronJob keeps the headers of Secrets sealed, whatever their names, and those of the spec as they are', () => {
    const { record } = compiled({}, 'free', [
      { name: 'X-Shop', value: 'north', isSecret: false },
      { name: 'X-Team', value: 'of a Secret\n', isSecret: true },
      { name: 'Authorization', value: 'of the spec', isSecret: false },
    ]);
    const context = recordSealingContext('org_a', 'cronJob', record?.id ?? '', 'headerValue');
    const opened = record?.http.headers.map(({ name, value, sealed }) => [name, value ?? `sealed ${keyring.open(sealed, context)}`]);
    expect(opened).toEqual([
      ['X-Shop', 'north'],
      ['X-Team', 'sealed of a Secret'],
      ['Authorization', 'of the spec'],
    ]);
  });

  test('an HttpCronJob with a header of a Secret that cannot be sent is refused, and the value is not repeated', () => {
    const { refusal } = compiled({}, 'free', [{ name: 'X-Team', value: 'canary\nHost: b', isSecret: true }]);
    expect(refusal).toEqual({
      reason: 'InvalidHeader',
      message: 'the value of the header X-Team in spec.headers contains characters that HTTP does not allow',
    });
  });

  test('an HttpCronJob has a static address on a paid plan, and is suspended with one on the free plan', () => {
    const paid = compiled({ useStaticIp: true }, 'starter');
    expect(paid).toMatchObject({ record: { enabled: true, http: { useStaticIp: true } } });
    expect(paid).not.toHaveProperty('refusal');
    expect(compiled({ useStaticIp: true })).toEqual({
      record: { ...paid.record, id: expect.any(String), enabled: false },
      refusal: { reason: 'PlanTooLow', message: 'useStaticIp needs a paid plan; this organization has free' },
    });
  });
});
