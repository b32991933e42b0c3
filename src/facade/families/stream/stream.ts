import { z } from 'zod';
import { invalidParameter, isPosthornError } from '../../../core/errors.ts';
import { statusRange } from '../../../core/status-range.ts';
import { organizationOfWebhooks } from '../../../core/webhook.ts';
import type { FeedRow } from '../../../data/feed/feed-row.ts';
import { attemptErrorTypes } from '../../../data/shard/attempt-record.ts';
import { isAnswerWithin } from '../../../data/shard/message-conditions.ts';
import { isAmong } from '../../../data/shard/message-filter.ts';
import { type Call, type Family, operation } from '../../http/operation.ts';
import { queryList } from '../../http/query.ts';
import { StreamedAnswer } from '../../http/streamed-answer.ts';
import { mapConcurrently } from '../../records/concurrently.ts';
import { eventTypeIds, filterIds } from '../../records/filter-ids.ts';
import { namedQuery, outcomeParameters } from '../shared/message-filters.ts';
import { eventTypeName, idsOf, statusOf, streamRow, streamStatuses, streamTopics, topicOf } from './stream-row.ts';

const query = z.object({
  topics: queryList(z.enum(streamTopics), 'Only these topics; default: all.'),
  sourceId: namedQuery('Ids or slugs of sources'),
  routeId: namedQuery('Ids or slugs of routes'),
  destinationId: namedQuery('Ids or slugs of destinations'),
  applicationId: namedQuery('Ids of applications'),
  endpointId: namedQuery('Ids of endpoints'),
  eventType: namedQuery('Names of event types'),
  replayId: namedQuery('Ids or slugs of replays'),
  status: queryList(z.enum(streamStatuses), 'Only rows with this status.'),
  errorType: queryList(z.enum(attemptErrorTypes), 'Only attempts that failed with this error.'),
  responseStatus: outcomeParameters.responseStatus,
});
type Query = z.output<typeof query>;

const description = `Server-Sent Events. Rows are named \`event.received\`; \`delivery.\` and \`message.\` with \`delivered\`, \`retrying\`, \`failed_over\`, \`failed\`, \`filtered\`, \`transform_failed\` or \`schema_failed\`; \`circuit.opened\`, \`circuit.half_opened\` and \`circuit.closed\`; \`replay.\` with the phase in lower case. Their data is JSON without payloads; a filter keeps rows that have its field; ids of sources, routes and destinations, of webhooks, and of replays exclude each other. \`reset\`: rows may be missing. \`skipped\`: rows beyond 50 a second were left out, \`{count, firstId, lastId}\`. \`reconnect\`: the server ends the stream. \`revoked\`: the credentials no longer hold. A client that sends \`Last-Event-ID\` gets the rows after it.`;

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
          credential: call.caller.credential.id,
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
  const { topics, status, eventType, errorType } = call.query;
  const responses = call.query.responseStatus?.map(statusRange);
  const sourceId = await filterIds(call, 'Source', call.query.sourceId);
  const routeId = await filterIds(call, 'Route', call.query.routeId);
  const destinationId = await filterIds(call, 'Destination', call.query.destinationId);
  const applicationId = await filterIds(call, 'WebhookApplication', call.query.applicationId);
  const endpointId = await filterIds(call, 'WebhookEndpoint', call.query.endpointId);
  const replayId = await filterIds(call, 'Replay', call.query.replayId);
  await mapConcurrently(eventType ?? [], (name) => eventTypeIds(call, name));
  const ofSources = [sourceId, routeId, destinationId].some((id) => id !== undefined);
  const ofWebhooks = [applicationId, endpointId, eventType].some((id) => id !== undefined);
  const route = routeId ?? applicationId;
  const destination = destinationId ?? endpointId;
  return (row) => {
    const isOfWebhooks = organizationOfWebhooks(row.org) !== null;
    if (isOfWebhooks ? ofSources : ofWebhooks) return false;
    if (!isAmong(replayId, row.kind === 'replay' ? row.replayId : null)) return false;
    const { source, ...target } = idsOf(row);
    if (!isAmong(sourceId, source) || !isAmong(route, target.route) || !isAmong(destination, target.destination)) return false;
    if (eventType !== undefined && !isAmong(eventType, source === null ? null : eventTypeName(call, source))) return false;
    const { responseStatus: code, errorType: error } = row.kind === 'message' ? row : { responseStatus: null, errorType: null };
    if (!isAmong(errorType, error) || responses?.some((range) => isAnswerWithin(range, code, error)) === false) return false;
    return isAmong(topics, topicOf(row)) && isAmong(status, statusOf(row));
  };
}

const separate = [['sourceId', 'routeId', 'destinationId'], ['applicationId', 'endpointId', 'eventType'], ['replayId']] as const;

/** INVALID_QUERY for filters that no row can meet together. */
function refuseMixed(sent: Query): void {
  const [one, other] = separate.map((names) => names.find((name) => sent[name] !== undefined)).filter((name) => name !== undefined);
  if (one !== undefined && other !== undefined) throw invalidParameter(other, `cannot be used with ${one}`);
}
