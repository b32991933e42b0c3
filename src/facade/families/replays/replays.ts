import { z } from 'zod';
import { type Family, operation } from '../../http/operation.ts';
import { cutPage, pageOf, pageQuery } from '../../http/pagination.ts';
import { findToRead, newestFirst } from '../../records/lookup.ts';
import { changePlan, changeRecord, createRecord, deleteRecord } from '../../records/resource-writes.ts';
import { newReplayBody, replayBody, replayDefinition, slugOfReplay } from './replay-body.ts';
import { replayPhase, replayRecord, toRecord, toRecords } from './replay-records.ts';

const readOnly = Object.keys(replayRecord.shape).filter((field) => !(field in replayBody.shape));

export const replays: Family = {
  name: 'Replays',
  noun: 'replay',
  description: 'Send again, at a bounded rate, what a filter selects among the messages of the past.',
  shown: {
    name: 'shop-outage',
    slug: 'shop-outage',
    filter: { status: ['dlq'], from: '2026-01-31T02:10:00.000Z', to: '2026-01-31T03:44:00.000Z' },
    phase: 'Running',
    plan: { candidates: 1200, isEstimate: false, bytes: 614_400, targets: 1, oldest: '2026-01-31T02:10:04.000Z', estimatedSeconds: 24 },
    queued: 400,
    skipped: 1,
    skippedByReason: { payload_not_found: 1 },
    delivered: 380,
    failed: 0,
    waiting: null,
    failure: null,
    completedAt: null,
  },
  changes: changePlan(replayDefinition, replayBody, { readOnly }),
  operations: [
    operation({
      method: 'GET',
      path: '/replays',
      operationId: 'listReplays',
      summary: 'List replays',
      scope: 'read',
      query: z.object({ ...pageQuery, phase: replayPhase.optional().describe('Only those in this phase.') }),
      answer: { status: 200, description: 'One page, newest first.', schema: pageOf(replayRecord) },
      handle: async (call) => {
        const { phase, ...page } = call.query;
        const all = newestFirst(call, 'Replay');
        if (phase === undefined) {
          const { items, pagination } = cutPage(all, page);
          return { data: await toRecords(items, call), pagination };
        }
        const { items: data, pagination } = cutPage(
          (await toRecords(all, call)).filter((record) => record.phase === phase),
          page,
        );
        return { data, pagination };
      },
    }),
    operation({
      method: 'POST',
      path: '/replays',
      operationId: 'createReplay',
      summary: 'Create a replay',
      description:
        'A worker plans it and then queues what was found, unless it is a dry run. At most 10 of an organization run at a time. An equal replay under a name that was used in the last 90 days is not run again. With a header x-posthorn-hop above 8 it is refused: own events of Posthorn are in a loop.',
      scope: 'write',
      body: newReplayBody,
      readOnly: [...readOnly, 'slug'],
      requestExample: {
        name: 'shop-outage',
        what: 'deliveries',
        filter: { status: ['dlq'], from: '2026-01-31T02:10:00Z', to: '2026-01-31T03:44:00Z' },
        ratePerSecond: 50,
      },
      answer: { status: 201, description: 'The new replay.', schema: replayRecord },
      errors: ['ALREADY_EXISTS', 'INVALID_SOURCE'],
      handle: async (call) => {
        const created = await createRecord(replayDefinition, call, { ...call.body, slug: slugOfReplay(call.body) });
        return await toRecord(created, call);
      },
    }),
    operation({
      method: 'GET',
      path: '/replays/{id}',
      operationId: 'getReplay',
      summary: 'Read a replay with its progress',
      scope: 'read',
      answer: { status: 200, description: 'The replay.', schema: replayRecord },
      errors: ['RESOURCE_NOT_FOUND'],
      handle: async (call) => toRecord(await findToRead(call, 'Replay', call.params['id'] ?? ''), call),
    }),
    operation({
      method: 'PATCH',
      path: '/replays/{id}',
      operationId: 'updateReplay',
      summary: 'Suspend, resume or cancel a replay',
      description: 'Only `suspend` and `cancel` can change. Cancelling cannot be taken back; what is queued by then is delivered.',
      scope: 'write',
      body: replayBody,
      readOnly,
      requestExample: { suspend: true },
      answer: { status: 200, description: 'The changed replay.', schema: replayRecord },
      errors: ['RESOURCE_NOT_FOUND', 'FIELD_MANAGED', 'CONFLICT'],
      handle: async (call) => toRecord(await changeRecord(replayDefinition, call, call.body), call),
    }),
    operation({
      method: 'DELETE',
      path: '/replays/{id}',
      operationId: 'deleteReplay',
      summary: 'Delete a replay',
      description: 'Cancels it, too.',
      scope: 'delete',
      answer: { status: 204, description: 'It is deleted.' },
      errors: ['RESOURCE_NOT_FOUND', 'FIELD_MANAGED'],
      handle: async (call) => {
        await deleteRecord(replayDefinition, call);
      },
    }),
  ],
};
