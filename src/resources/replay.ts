import { z } from 'zod';
import { celLimits } from '../core/cel-filter.ts';
import { replayedDeliveryStatuses, replayedEventStatuses, replayedMessageStatuses } from '../core/replay-statuses.ts';
import { defineKind } from './definition.ts';
import { commonStatus, reference, referenceList } from './fields.ts';
import { ageColumn, readyColumns } from './printer-columns.ts';
import { replayRules } from './replay-constraints.ts';
import { dateTime, text } from './text.ts';

const id = (what: string) => text(1, 128).describe(`Id of ${what}.`);
/** Each has an index that is walked. */
const maxNamed = 10;
const several = (kind: string) => referenceList(kind, maxNamed).min(1);
const list = <Item extends z.ZodType>(item: Item, max: number) => z.array(item).min(1).max(max).meta({ 'x-kubernetes-list-type': 'set' });
const names = () => list(text(1, 128), maxNamed);

const filter = z.strictObject({
  ids: list(text(1, 128), 100).optional().describe('Only those with one of these ids.'),
  statuses: list(z.enum([...new Set([...replayedDeliveryStatuses, ...replayedMessageStatuses, ...replayedEventStatuses])]), 8)
    .optional()
    .describe('Only those with one of these statuses. Default: dlq; of events no_routes and filtered.'),
  sourceRef: reference('Source').optional().describe('Only those of this source. Of events only.'),
  sourceRefs: several('Source').optional().describe('Only those of any of these sources. Of events only.'),
  routeRef: reference('Route').optional().describe('Only those of this route; events are sent by this route only. Not of messages.'),
  routeRefs: several('Route').optional().describe('As routeRef, with any of these routes. Not of messages.'),
  destinationRef: reference('Destination')
    .optional()
    .describe('Only those that went to this destination; events are sent to this destination only. Not of messages.'),
  destinationRefs: several('Destination').optional().describe('As destinationRef, with any of these destinations. Not of messages.'),
  applicationId: id('a webhook application').optional().describe('Only those of this webhook application. Of messages only.'),
  applicationIds: names().optional().describe('Only those of any of these webhook applications. Of messages only.'),
  endpointId: id('a webhook endpoint').optional().describe('Only those to this webhook endpoint. Of messages only.'),
  endpointIds: names().optional().describe('Only those to any of these webhook endpoints. Of messages only.'),
  eventType: text(1, 128).optional().describe('Only those of this event type. Of messages only.'),
  eventTypes: names().optional().describe('Only those of any of these event types. Of messages only.'),
  errorTypes: list(text(1, 64), 16).optional().describe('Only those whose last error has one of these types.'),
  responseStatuses: list(text(3, 3).regex(/^[1-5]([0-9][0-9]|xx)$/, 'must be a status such as 503, or a class such as 5xx'), 20)
    .optional()
    .describe('Only those whose last response had one of these statuses, or a status of one of these classes.'),
  attemptsMin: z.int().min(0).max(1000).optional().describe('Only those with at least this many attempts.'),
  attemptsMax: z.int().min(0).max(1000).optional().describe('Only those with at most this many attempts.'),
  from: dateTime.optional().describe('Only those that were created at this time or later.'),
  to: dateTime.optional().describe('Only those that were created at this time or earlier.'),
  failedFrom: dateTime.optional().describe('Only those of which an attempt that began at this time or later failed.'),
  failedTo: dateTime.optional().describe('Only those of which an attempt that began at this time or earlier failed.'),
  where: text(1, celLimits.sourceLength).optional().describe('Only those whose event meets this CEL expression.'),
});

const counts = z.strictObject({
  candidates: z.int().min(0).describe('Originals that the plan has found.'),
  isEstimate: z.boolean().describe('The plan ended at 100,000 candidates: there may be more.'),
  bytes: z.int().min(0).describe('Bytes of the payloads of the candidates, each counted as often as it is sent.'),
  targets: z.int().min(0).describe('Targets of the candidates, at most 100 of them counted.'),
  oldest: dateTime.optional().describe('When the oldest candidate was created.'),
  estimatedSeconds: z.int().min(0).describe('Duration at the rate of the replay.'),
});

const spec = z.strictObject({
  what: z
    .enum(['deliveries', 'messages', 'events'])
    .describe(
      'deliveries: of the routes of the organization; messages: those to endpoints of webhook applications; events: those that reached no route, which current routes evaluate again.',
    ),
  filter: filter.default({}).describe('Which of them; all conditions have to be met. Times are absolute.'),
  ratePerSecond: z.int().min(1).max(10_000).default(100).describe('Messages that are queued in a second, at most.'),
  destinationRef: reference('Destination')
    .optional()
    .describe('Where all of them are sent to instead, without failover. It need not be in their routes. Of deliveries only.'),
  stopAfterFailurePercent: z
    .int()
    .min(1)
    .max(100)
    .optional()
    .describe('The replay fails when more than this percentage of its messages has failed, of at least 100 that ended.'),
  ttlSecondsAfterFinished: z
    .int()
    .min(0)
    .max(31_536_000)
    .optional()
    .describe('Seconds after which the finished replay is deleted. Default: never.'),
  dryRun: z.boolean().default(false).describe('Only the plan is made: nothing is sent.'),
  suspend: z.boolean().default(false).describe('While true, nothing more is queued.'),
  cancel: z.boolean().default(false).describe('Ends the replay; it cannot be taken back.'),
});

const progress = {
  phase: z
    .enum(['Planning', 'Running', 'Suspended', 'Succeeded', 'Failed', 'Cancelled'])
    .optional()
    .describe('Succeeded: all is queued, and all that was queued has ended.'),
  plan: counts.optional().describe('What the plan has found.'),
  queued: z.int().min(0).optional().describe('Messages that were queued.'),
  skipped: z.int().min(0).optional().describe('Originals that were not replayed.'),
  skippedBy: z
    .array(z.strictObject({ reason: text(1, 64).describe('Why they were not replayed.'), count: z.int().min(0).describe('How many.') }))
    .max(8)
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['reason'] })
    .optional()
    .describe('The same by reason.'),
  delivered: z.int().min(0).optional().describe('Queued messages that were delivered.'),
  failed: z.int().min(0).optional().describe('Queued messages that have failed for good.'),
  endedOtherwise: z.int().min(0).optional().describe('Queued messages that a filter held back, or that were cancelled or removed.'),
  startTime: dateTime.optional().describe('When the replay began.'),
  completionTime: dateTime.optional().describe('When it ended.'),
  estimatedCompletionTime: dateTime.optional().describe('When all is queued at its rate, if nothing waits.'),
};

/** Fields of the status about the run. */
export const replayStatusFields: ReadonlySet<string> = new Set(Object.keys(progress));

export const replay = defineKind({
  kind: 'Replay',
  plural: 'replays',
  singular: 'replay',
  shortName: 'rpl',
  scope: 'Namespaced',
  description: 'Sends again, once and at a bounded rate, what a filter selects among the messages of the past.',
  idPrefix: 'rep_',
  noun: 'replay',
  recordKind: 'replay',
  world: 'both',
  isServed: true,
  workers: 2,
  indexes: { eventType: ({ filter: { eventType, eventTypes } }) => [eventType ?? eventTypes ?? []].flat() },
  hasSharedStatus: true,
  spec,
  status: z.strictObject({
    ...commonStatus,
    ...progress,
  }),
  rules: replayRules(spec),
  printerColumns: [
    ...readyColumns,
    { name: 'Phase', type: 'string', jsonPath: '.status.phase' },
    { name: 'Planned', type: 'integer', jsonPath: '.status.plan.candidates' },
    { name: 'Queued', type: 'integer', jsonPath: '.status.queued' },
    { name: 'Delivered', type: 'integer', jsonPath: '.status.delivered' },
    { name: 'Failed', type: 'integer', jsonPath: '.status.failed' },
    { name: 'Waiting', type: 'string', jsonPath: '.status.conditions[?(@.type=="Waiting")].reason', priority: 1 },
    ageColumn,
  ],
});
