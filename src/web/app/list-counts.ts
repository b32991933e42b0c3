import type { Answer } from '../api/client.ts';
import type { Layer } from '../ui/charts.tsx';
import { count, quantity } from '../ui/format.ts';

type Series = Answer<'GET /analytics/series'>;
type Point = Series['points'][number];
type Total = Series['total'];

/** What the histogram of a list counts. */
export interface Counts {
  isOfWebhooks: boolean;
  /** Filters of the list that a series can be of; it takes one of them, the first that is set. */
  scopes: readonly string[];
  /** The filters by which the list goes by the time that is counted, or comes nearest to it. */
  times: readonly [from: string, to: string];
  layers: readonly Layer<Point>[];
  /** Without the time. */
  sentence: (total: Total) => string;
  /** Which of them are counted, and when. */
  counted: string;
}

export type CountedList = 'events' | 'deliveries' | 'messages' | 'dead deliveries' | 'dead messages';

const delivered: Layer<Point> = { word: 'Delivered', fill: 'f-s2', value: ({ delivered: found }) => found ?? 0 };
const failed: Layer<Point> = { word: 'Failed', fill: 'f-bad', value: ({ failed: found }) => found ?? 0 };
const movedAway: Layer<Point> = { word: 'To failover', fill: 'f-warn', value: ({ movedAway: found }) => found ?? 0 };
const ended =
  (one: string, several: string) =>
  (total: Total): string => {
    const lost = total.failed ?? 0;
    const moved = total.movedAway ?? 0;
    const further = moved === 0 ? '' : ` ${count(moved)} went to a failover destination,`;
    return `${quantity((total.delivered ?? 0) + lost, one, several)} ended, ${count(lost)} of them failed,${further}`;
  };
const givenUp =
  (one: string, several: string) =>
  (total: Total): string =>
    `${quantity(total.failed ?? 0, one, several)} failed`;
const created: Counts['times'] = ['from', 'to'];
const failedBetween: Counts['times'] = ['failedFrom', 'failedTo'];

export const countsOf: Record<CountedList, Counts> = {
  events: {
    isOfWebhooks: false,
    scopes: ['sourceId'],
    times: created,
    layers: [{ word: 'Events', fill: 'f-s2', value: ({ events }) => events ?? 0 }],
    sentence: ({ events }) => `${quantity(events ?? 0, 'event', 'events')} came in`,
    counted: 'Counted when they come in, whatever becomes of them.',
  },
  deliveries: {
    isOfWebhooks: false,
    scopes: ['destinationId', 'routeId'],
    times: created,
    layers: [delivered, movedAway, failed],
    sentence: ended('delivery', 'deliveries'),
    counted:
      'Counted when they end, so without those under way; the list goes by when they were made. What a destination did not take goes to a failover destination, and ends there.',
  },
  messages: {
    isOfWebhooks: true,
    scopes: ['endpointId', 'applicationId'],
    times: created,
    layers: [delivered, failed],
    sentence: ended('message', 'messages'),
    counted: 'Counted when they end, so without those under way; the list goes by when they were made.',
  },
  'dead deliveries': {
    isOfWebhooks: false,
    scopes: ['destinationId', 'routeId'],
    times: failedBetween,
    layers: [failed],
    sentence: givenUp('delivery', 'deliveries'),
    counted:
      'Counted when they were given up, also those that a schema or a transform refused and those that were sent again since; the list has the dead letters of now, by when attempts failed.',
  },
  'dead messages': {
    isOfWebhooks: true,
    scopes: ['endpointId', 'applicationId'],
    times: failedBetween,
    layers: [failed],
    sentence: givenUp('message', 'messages'),
    counted:
      'Counted when they were given up, also those that a transform refused and those that were sent again since; the list has the dead letters of now, by when attempts failed.',
  },
};
