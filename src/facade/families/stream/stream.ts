import { z } from 'zod';
import { invalidParameter, isPosthornError } from '../../../core/errors.ts';
import { organizationOfWebhooks } from '../../../core/webhook.ts';
import type { FeedRow } from '../../../data/feed/feed-row.ts';
import { type Call, type Family, operation } from '../../http/operation.ts';
import { queryList } from '../../http/query.ts';
import { StreamedAnswer } from '../../http/streamed-answer.ts';
import { filterId } from '../../records/filter-ids.ts';
import { idOrSlug } from '../../records/record-fields.ts';
import { eventTypeName, idsOf, statusOf, streamRow, streamStatuses, streamTopics, topicOf } from './stream-row.ts';

const query = z.object({
  topics: queryList(z.enum(streamTopics), 'Only these topics; default: all.'),
  sourceId: idOrSlug.optional().describe('Id or slug of a source.'),
  routeId: idOrSlug.optional().describe('Id or slug of a route.'),
  destinationId: idOrSlug.optional().describe('Id or slug of a destination.'),
  applicationId: idOrSlug.optional().describe('Id of an application; not with ids of sources, routes or destinations.'),
  endpointId: idOrSlug.optional().describe('Id of an endpoint; not with these either.'),
  eventType: z.string().min(1).max(256).optional().describe('Name of an event type; not with these either.'),
  replayId: idOrSlug.optional().describe('Id or slug of a replay; not with any other id or an event type.'),
  status: queryList(z.enum(streamStatuses), 'Only rows with this status.'),
});
type Query = z.output<typeof query>;

const description = `Server-Sent Events. Rows are named \`event.received\`; \`delivery.\` and \`message.\` with \`delivered\`, \`retrying\`, \`failed_over\`, \`failed\`, \`filtered\`, \`transform_failed\` or \`schema_failed\`; \`circuit.opened\`, \`circuit.half_opened\` and \`circuit.closed\`; \`replay.\` with the phase in lower case. Their data is JSON without payloads; a filter keeps rows that have its field. \`reset\`: rows may be missing. \`skipped\`: rows beyond 50 a second were left out, \`{count, firstId, lastId}\`. \`reconnect\`: the server ends the stream. \`revoked\`: the credentials no longer hold. A client that sends \`Last-Event-ID\` gets the rows after it.`;

const example = `retry: 2000
id: 5d1f6a0c9b3e~mkz0q1

event: delivery.delivered
id: 5d1f6a0c9b3e~mkz0q8
data: {"topic":"deliveries","type":"delivery.delivered","status":"delivered","responseStatus":200}

`;

const headers = {
  'Content-Type': 'text/event-stream; charset=utf-8',
  'Cache-Control': 'no-store',
  'X-Accel-Buffering': 'no',
};

export const stream: Family = {
  name: 'Live stream',
  noun: 'row',
  description: 'What happens, as it happens.',
  operations: [
    operation({
      method: 'GET',
      path: '/stream',
      operationId: 'streamTransitions',
      summary: 'Follow events, deliveries, messages, circuits and replays',
      description,
      scope: 'read',
      query,
      answer: {
        status: 200,
        description: 'Rows, until one side ends the stream.',
        events: { description: 'Server-Sent Events.', example },
      },
      errors: ['RESOURCE_NOT_FOUND'],
      handle: async (call) => {
        const matches = await filterOf(call);
        const { pieces, broken } = await call.services.streams.open({
          organization: call.caller.organization.id,
          lastEventId: call.lastEventId,
          matches,
          show: (row) => {
            const record = streamRow(row, call);
            return { type: record.type, json: JSON.stringify(record) };
          },
          isAllowed: () => stillAllowed(call),
          signal: call.signal,
        });
        return new StreamedAnswer(headers, pieces, broken);
      },
    }),
  ],
};

const refusals: readonly string[] = ['UNAUTHORIZED', 'FORBIDDEN', 'RESOURCE_NOT_FOUND'];

async function stillAllowed({ recheck }: Call): Promise<boolean> {
  try {
    await recheck();
    return true;
  } catch (error) {
    if (isPosthornError(error) && refusals.includes(error.code)) return false;
    throw error;
  }
}

async function filterOf(call: Call<Query>): Promise<(row: FeedRow) => boolean> {
  refuseMixed(call.query);
  const { topics, status, eventType } = call.query;
  const wantedTopics = topics === undefined ? null : new Set<string>(topics);
  const wantedStatuses = status === undefined ? null : new Set<string>(status);
  const sourceId = await filterId(call, 'Source', call.query.sourceId);
  const routeId = await filterId(call, 'Route', call.query.routeId);
  const destinationId = await filterId(call, 'Destination', call.query.destinationId);
  const applicationId = await filterId(call, 'WebhookApplication', call.query.applicationId);
  const endpointId = await filterId(call, 'WebhookEndpoint', call.query.endpointId);
  const replayId = await filterId(call, 'Replay', call.query.replayId);
  const ofSources = [sourceId, routeId, destinationId].some((id) => id !== undefined);
  const ofWebhooks = [applicationId, endpointId, eventType].some((id) => id !== undefined);
  const route = routeId ?? applicationId;
  const destination = destinationId ?? endpointId;
  return (row) => {
    const isOfWebhooks = organizationOfWebhooks(row.org) !== null;
    if (isOfWebhooks ? ofSources : ofWebhooks) return false;
    if (replayId !== undefined && (row.kind !== 'replay' || row.replayId !== replayId)) return false;
    const { source, ...target } = idsOf(row);
    if (sourceId !== undefined && source !== sourceId) return false;
    if (eventType !== undefined && (source === null || eventTypeName(call, source) !== eventType)) return false;
    if (route !== undefined && target.route !== route) return false;
    if (destination !== undefined && target.destination !== destination) return false;
    return (wantedTopics?.has(topicOf(row)) ?? true) && (wantedStatuses?.has(statusOf(row)) ?? true);
  };
}

const separate = [['sourceId', 'routeId', 'destinationId'], ['applicationId', 'endpointId', 'eventType'], ['replayId']] as const;

/** INVALID_QUERY for filters that no row can meet together. */
function refuseMixed(sent: Query): void {
  const [one, other] = separate.map((names) => names.find((name) => sent[name] !== undefined)).filter((name) => name !== undefined);
  if (one !== undefined && other !== undefined) throw invalidParameter(other, `cannot be used with ${one}`);
}
