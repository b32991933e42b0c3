import { describe, expect, test } from '@jest/globals';
import { storedObject } from '../../test/support/objects.ts';
import type { SpecInputOf } from '../resources/kinds.ts';
import { compileReplay, replayIdentity } from './replay.ts';

const organization = { id: 'org_a' };
const none = { filterSourceId: undefined, filterRouteId: undefined, filterDestinationId: undefined, destinationId: undefined };
const object = (spec: Partial<SpecInputOf<'Replay'>> = {}, name = 'again') =>
  storedObject('Replay', name, { what: 'deliveries', ...spec }, 'acme');
const compiled = (spec: Partial<SpecInputOf<'Replay'>>, ids: Partial<typeof none> | Record<string, string | string[]> = {}) =>
  compileReplay(object(spec), { organization, ...none, ...ids });
const identity = (spec: Partial<SpecInputOf<'Replay'>>, name?: string, org = 'org_a') => replayIdentity(object(spec, name), { id: org });

describe('a Replay', () => {
  test('the least Replay becomes a record of dead letters with all defaults', () => {
    expect(compiled({}).record).toEqual({
      v: 1,
      id: expect.stringMatching(/^rep_/),
      org: 'org_a',
      slug: 'again',
      uid: object().metadata.uid,
      identity: identity({}),
      what: 'deliveries',
      filter: { statuses: ['dlq'] },
      ratePerSecond: 100,
      isDryRun: false,
      isSuspended: false,
      isCancelled: false,
      createdAtMs: expect.any(Number),
      generation: 3,
    });
  });

  test('a Replay has ids in place of names, milliseconds in place of times, and ranges in place of classes', () => {
    const { record } = compiled(
      {
        filter: {
          ids: ['msg_a'],
          statuses: ['failed'],
          routeRef: { name: 'orders' },
          destinationRef: { name: 'shop' },
          errorTypes: ['timeout'],
          responseStatuses: ['503', '4xx'],
          attemptsMin: 0,
          attemptsMax: 7,
          from: '1970-01-01T00:00:01Z',
          to: '1970-01-01T02:00:02.5+02:00',
          failedFrom: '1970-01-01T00:00:03Z',
          failedTo: '1970-01-01T00:00:04Z',
          where: 'event.type == "order.paid"',
        },
        destinationRef: { name: 'other' },
        stopAfterFailurePercent: 20,
        dryRun: true,
        suspend: true,
        cancel: true,
      },
      { filterRouteId: 'rt_a', filterDestinationId: 'dst_a', destinationId: 'dst_b' },
    );
    expect(record).toMatchObject({
      destinationId: 'dst_b',
      stopAfterFailurePercent: 20,
      isDryRun: true,
      isSuspended: true,
      isCancelled: true,
    });
    expect(record?.filter).toEqual({
      ids: ['msg_a'],
      statuses: ['failed'],
      routeId: 'rt_a',
      destinationId: 'dst_a',
      errorTypes: ['timeout'],
      responseStatuses: [
        { first: 503, last: 503 },
        { first: 400, last: 499 },
      ],
      attemptsMin: 0,
      attemptsMax: 7,
      fromMs: 1000,
      toMs: 2500,
      failedFromMs: 3000,
      failedToMs: 4000,
      where: 'event.type == "order.paid"',
    });
  });

  test('of a Replay that names several of each the record has all of them', () => {
    const { record } = compiled(
      { filter: { routeRefs: [{ name: 'orders' }, { name: 'returns' }], destinationRefs: [{ name: 'shop' }, { name: 'bank' }] } },
      { filterRouteId: ['rt_a', 'rt_b'], filterDestinationId: ['dst_a', 'dst_b'] },
    );
    expect(record?.filter).toEqual({ statuses: ['dlq'], routeId: ['rt_a', 'rt_b'], destinationId: ['dst_a', 'dst_b'] });
    const ofMessages = compiled({
      what: 'messages',
      filter: { applicationIds: ['app_a', 'app_b'], endpointIds: ['ep_a', 'ep_b'], eventTypes: ['order.made', 'order.paid'] },
    });
    expect(ofMessages.record?.filter).toEqual({
      statuses: ['dlq'],
      applicationId: ['app_a', 'app_b'],
      endpointId: ['ep_a', 'ep_b'],
      eventType: ['order.made', 'order.paid'],
    });
  });

  test('a Replay whose expression does not compile is refused, with the place of what is wrong', () => {
    const { record, refusal } = compiled({ filter: { where: 'event.type ==' } });
    expect(record).toBeUndefined();
    expect(refusal).toEqual({ reason: 'InvalidFilter', message: expect.stringMatching(/^spec\.filter\.where: line 1, column \d+: /) });
    expect(compiled({ filter: { where: 'headers.size() > 0' } }).refusal).toBeUndefined();
  });
});

describe('the identity of a Replay', () => {
  test.each<[string, Partial<SpecInputOf<'Replay'>>, Partial<SpecInputOf<'Replay'>>]>([
    ['is suspended', {}, { suspend: true }],
    ['is cancelled', {}, { cancel: true }],
    ['writes a default down', {}, { ratePerSecond: 100, dryRun: false, filter: {} }],
    ['names the same in another order', { filter: { ids: ['a', 'b'] } }, { filter: { ids: ['b', 'a'] } }],
    [
      'names the same destinations in another order',
      { filter: { destinationRefs: [{ name: 'a' }, { name: 'b' }] } },
      { filter: { destinationRefs: [{ name: 'b' }, { name: 'a' }] } },
    ],
    ['writes a time in another zone', { filter: { from: '2026-01-31T12:00:00Z' } }, { filter: { from: '2026-01-31T13:00:00.0+01:00' } }],
  ])('the identity of a Replay stays when it %s', (_, one, other) => {
    expect(identity(other)).toBe(identity(one));
    expect(identity(one)).toMatch(/^[0-9a-f]{64}$/);
  });

  test('the identity of a Replay is another with another organization, name or field of the spec', () => {
    const identities = [
      identity({}),
      identity({}, 'other'),
      identity({}, 'again', 'org_b'),
      identity({ what: 'messages' }),
      identity({ filter: { ids: ['a'] } }),
      identity({ filter: { ids: ['b'] } }),
      identity({ filter: { from: '2026-01-31T12:00:00Z' } }),
      identity({ filter: { from: '2026-01-31T12:00:00.000000001Z' } }),
      identity({ ratePerSecond: 1 }),
      identity({ dryRun: true }),
      identity({ destinationRef: { name: 'shop' } }),
      identity({ ttlSecondsAfterFinished: 1 }),
    ];
    expect(new Set(identities).size).toBe(identities.length);
  });

  test('the identity of a Replay is of this very text, which later versions must not change: replays that have run would run again', () => {
    expect(identity({ filter: { statuses: ['failed', 'dlq'], from: '2026-01-31T12:00:00Z' }, ratePerSecond: 7 })).toMatchInlineSnapshot(
      `"41958fcc0551734052ce8b312494d9df5ab523e2f7da4bf5cf75dbd61cdfc8f9"`,
    );
  });
});
