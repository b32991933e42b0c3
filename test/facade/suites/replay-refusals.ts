import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { FacadeWorld } from '../facade-world.ts';

/** Which replays are refused, and with which field, with any store behind the API. */
export function describeReplayRefusals(start: () => Promise<FacadeWorld>): void {
  let world: FacadeWorld;
  beforeAll(async () => {
    world = await start();
    const source = await world.create('sources', { name: 'Shop' });
    const destination = await world.create('destinations', { name: 'Target', url: 'https://hooks.example.com/in' });
    await world.create('destinations', { name: 'Standby', url: 'https://hooks.example.com/in' });
    await world.create('routes', { name: 'Orders', sourceId: source.id, destinationIds: [destination.id] });
  });
  afterAll(() => world.stop());

  test.each<[body: object, message: RegExp]>([
    [{}, /^what /],
    [{ what: 'sources' }, /^what /],
    [{ what: 'deliveries', filter: { sourceId: 'shop' } }, /^filter\.sourceId must be left out unless what is events\.$/],
    [{ what: 'events', filter: { status: ['dlq'] } }, /^filter\.status must be of no_routes, filtered when what is events\.$/],
    [
      { what: 'events', filter: { errorType: ['timeout'] } },
      /^filter\.errorType must be left out unless what is deliveries or messages\.$/,
    ],
    [{ what: 'events', filter: { failedTo: '2026-01-31' } }, /^filter\.failedTo must be left out unless what is deliveries or messages\.$/],
    [{ what: 'events', filter: { sourceId: 'nowhere' } }, /^filter\.sourceId/],
    [{ what: 'events', toDestinationId: 'standby' }, /^toDestinationId must be left out unless what is deliveries\.$/],
    [{ what: 'deliveries', cancel: true }, /^unknown field "cancel"/],
    [{ what: 'deliveries', name: 'Outage' }, /^name must be lower-case letters/],
    [{ what: 'deliveries', ratePerSecond: 0 }, /^ratePerSecond /],
    [{ what: 'deliveries', filter: { statuses: ['dlq'] } }, /^unknown field "filter.statuses"/],
    [{ what: 'deliveries', filter: { status: 'dlq' } }, /^filter\.status must be a list/],
    [{ what: 'deliveries', filter: { status: ['pending'] } }, /^filter\.status/],
    [{ what: 'deliveries', filter: { status: ['exhausted'] } }, /^filter\.status must be of delivered, .* when what is deliveries\.$/],
    [
      { what: 'messages', filter: { status: ['delivered'] } },
      /^filter\.status must be of success, exhausted, dlq when what is messages\.$/,
    ],
    [{ what: 'deliveries', filter: { errorType: ['nonsense'] } }, /^filter\.errorType "nonsense" is no type of error; there are /],
    [{ what: 'deliveries', filter: { responseStatus: ['600'] } }, /^filter\.responseStatus\[0\] must be a status such as 503/],
    [{ what: 'deliveries', filter: { eventType: 'a' } }, /^filter\.eventType must be left out unless what is messages\.$/],
    [
      { what: 'messages', filter: { applicationId: 'app_a' } },
      /^filter\.applicationId is none that the organization has: There is no application "app_a"\.$/,
    ],
    [
      { what: 'messages', filter: { eventType: 'order.payed' } },
      /^filter\.eventType is none that the organization has: There is no event type "order\.payed"\.$/,
    ],
    [{ what: 'deliveries', filter: { routeId: 'nobody' } }, /^filter\.routeId: there is no route "nobody"\.$/],
    [{ what: 'deliveries', filter: { destinationId: 'nobody' } }, /^filter\.destinationId: there is no destination "nobody"\.$/],
    [{ what: 'deliveries', toDestinationId: 'nobody' }, /^toDestinationId: there is no destination "nobody"\.$/],
    [
      { what: 'messages', filter: { destinationId: 'target' } },
      /^filter\.destinationId must be left out unless what is deliveries or events\.$/,
    ],
    [{ what: 'messages', filter: { routeId: 'orders' } }, /^filter\.routeId must be left out unless what is deliveries or events\.$/],
    [{ what: 'messages', toDestinationId: 'target' }, /^toDestinationId must be left out unless what is deliveries\.$/],
    [{ what: 'deliveries', filter: { attemptsMin: 3, attemptsMax: 2 } }, /^filter\.attemptsMax is less than attemptsMin\.$/],
    [{ what: 'deliveries', filter: { from: '2026-02-01', to: '2026-01-31' } }, /^filter\.to is before from\.$/],
    [
      { what: 'deliveries', filter: { failedFrom: '2026-01-31T12:00:01Z', failedTo: '2026-01-31T12:00:00Z' } },
      /^filter\.failedTo is before failedFrom\.$/,
    ],
    [{ what: 'deliveries', filter: { from: 'yesterday' } }, /^filter\.from must be an ISO 8601 time/],
    [{ what: 'deliveries', filter: { where: 'event.data.a ==' } }, /^filter\.where line 1, column \d+: /],
    [{ what: 'deliveries', filter: { where: 'nobody > 1' } }, /^filter\.where line 1, column 1: /],
  ])('%j is refused with its field', async (body, message) => {
    const answer = await world.request('POST', '/api/replays', { body });
    expect([answer.status, answer.body.message]).toEqual([400, expect.stringMatching(message)]);
  });
}
