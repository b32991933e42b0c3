import { z } from 'zod';
import { PosthornError } from '../../../core/errors.ts';
import { cronRunTask, triggeredExecution } from '../../../data/cron/cron-run-task.ts';
import { cronJobBeyondPlan } from '../../../resources/plan-gates.ts';
import { type Family, operation } from '../../http/operation.ts';
import { optionalPage, optionalPageQuery } from '../../http/pagination.ts';
import { queryBoolean, queryInteger, querySearch } from '../../http/query.ts';
import { cachedObjects, find, findToRead, idOf } from '../../records/lookup.ts';
import { newSlug } from '../../records/record-fields.ts';
import { findVersioned } from '../../records/record-versions.ts';
import { changePlan, changeRecord, createRecord, deleteRecord } from '../../records/resource-writes.ts';
import { matchesText } from '../../records/search.ts';
import { deleted } from '../shared/envelope.ts';
import { cronJobBody, cronJobToSpec } from './cron-job-body.ts';
import {
  byName,
  cronExecutionRecord,
  cronJobItem,
  cronJobRecord,
  cronJobSettings,
  executionToRecord,
  idsInForce,
  toItems,
  toRecord,
} from './cron-job-records.ts';
import { listCronSchedule } from './cron-schedule.ts';

const maxListed = 1000;
const maxExecutions = 100;
/** Until a worker has taken a triggered run, and for the way back. */
const marginMs = 10_000;

const cronJobDefinition = {
  kind: 'HttpCronJob',
  immutable: { slug: (object: { metadata: { name: string } }) => [object.metadata.name] },
  toSpec: cronJobToSpec,
} as const;
const required = { name: true, cronExpression: true, url: true } as const;
const readOnly = Object.keys(cronJobRecord.shape).filter((field) => !(field in cronJobBody.shape));

export const cronJobs: Family = {
  name: 'Cron jobs',
  noun: 'cron job',
  description: 'HTTP requests that are sent repeatedly, and their results.',
  common: [cronJobSettings],
  changes: changePlan(cronJobDefinition, cronJobBody, { readOnly }),
  operations: [
    operation({
      method: 'GET',
      path: '/cron',
      operationId: 'listCronJobs',
      summary: 'List cron jobs',
      scope: 'read',
      query: z.object({
        search: querySearch.optional().describe('Part of the name, slug or URL.'),
        isActive: queryBoolean.optional().describe('Only those that are active, or not.'),
        ...optionalPageQuery,
      }),
      answer: {
        status: 200,
        description: 'The cron jobs by name: at most 1000, or the requested page.',
        schema: z.object({ cronJobs: z.array(cronJobItem).describe('The jobs.') }),
      },
      handle: async (call) => {
        const { search, isActive, ...pages } = call.query;
        const jobs = cachedObjects(call, 'HttpCronJob')
          .filter(({ metadata, spec }) => matchesText(search, spec.name, metadata.name, spec.url))
          .filter(({ spec }) => isActive === undefined || spec.enabled === isActive);
        return { cronJobs: await toItems(optionalPage(byName(jobs), pages, maxListed), call) };
      },
    }),
    operation({
      method: 'POST',
      path: '/cron',
      operationId: 'createCronJob',
      summary: 'Create a cron job',
      scope: 'write',
      body: cronJobBody.extend({ slug: newSlug.optional() }).required(required),
      readOnly,
      requestExample: {
        name: 'Morning report',
        cronExpression: '30 6 * * 1-5',
        timezone: 'Europe/Berlin',
        url: 'https://reports.example.com/run',
      },
      answer: {
        status: 201,
        description: 'The new cron job.',
        schema: z.object({
          cronJob: cronJobRecord
            .extend({ nextRunAt: z.string().nullable().describe('UTC, as `YYYY-MM-DD HH:MM:SS`; null when it is not active.') })
            .meta({ id: 'NewCronJob', description: 'The job.' }),
        }),
      },
      errors: ['INVALID_URL', 'ALREADY_EXISTS', 'CONFLICT'],
      handle: async (call) => {
        const created = await createRecord(cronJobDefinition, call, call.body);
        const record = await toRecord(created, call);
        return { cronJob: { ...record, nextRunAt: record.nextRunAt?.replace('T', ' ').slice(0, 19) ?? null } };
      },
    }),
    operation({
      method: 'GET',
      path: '/cron/{id}',
      operationId: 'getCronJob',
      summary: 'Read a cron job',
      scope: 'read',
      answer: { status: 200, description: 'The cron job.', schema: z.object({ cronJob: cronJobRecord.describe('The job.') }) },
      errors: ['RESOURCE_NOT_FOUND'],
      isVersioned: true,
      handle: async (call) => ({ cronJob: await toRecord(await findVersioned(call, 'HttpCronJob', call.params['id'] ?? ''), call) }),
    }),
    operation({
      method: 'PATCH',
      path: '/cron/{id}',
      operationId: 'updateCronJob',
      summary: 'Change a cron job',
      description: 'Fields that are not sent stay unchanged. A run that is under way continues unchanged.',
      scope: 'write',
      body: cronJobBody,
      readOnly,
      requestExample: { isActive: false },
      answer: { status: 200, description: 'It is changed.', schema: deleted },
      errors: ['RESOURCE_NOT_FOUND', 'INVALID_URL', 'CREDENTIALS_REQUIRED', 'FIELD_MANAGED', 'CONFLICT'],
      isVersioned: true,
      handle: async (call) => {
        await changeRecord(cronJobDefinition, call, call.body);
        return { success: true };
      },
    }),
    operation({
      method: 'DELETE',
      path: '/cron/{id}',
      operationId: 'deleteCronJob',
      summary: 'Delete a cron job with its executions',
      scope: 'delete',
      answer: { status: 200, description: 'It is deleted.', schema: deleted },
      errors: ['RESOURCE_NOT_FOUND', 'FIELD_MANAGED'],
      isVersioned: true,
      handle: async (call) => {
        const [id] = await idsInForce([await find(call, 'HttpCronJob', call.params['id'] ?? '')], call);
        const deleted = await deleteRecord(cronJobDefinition, call);
        if (id === idOf(deleted)) await call.services.cronExecutions.remove(id);
        return { success: true };
      },
    }),
    operation({
      method: 'POST',
      path: '/cron/{id}/trigger',
      operationId: 'triggerCronJob',
      summary: 'Run a cron job now',
      description:
        'Whatever its schedule, and also while it is not active; the run is recorded as an execution. The answer is 200 also when the run fails, and 503 when no worker could make it.',
      scope: 'write',
      body: z.strictObject({}),
      requestExample: {},
      answer: {
        status: 200,
        description: 'The execution.',
        schema: z.object({ execution: triggeredExecution.describe('The execution.') }),
      },
      errors: ['RESOURCE_NOT_FOUND', 'CONFLICT'],
      handle: async (call) => {
        const job = await findToRead(call, 'HttpCronJob', call.params['id'] ?? '');
        const beyondPlan = cronJobBeyondPlan(job.spec, call.caller.organization.plan);
        if (beyondPlan !== null) throw new PosthornError('FORBIDDEN', `The cron job is suspended: ${beyondPlan}.`);
        const execution = await call.services.tasks.call(cronRunTask, {
          org: call.caller.organization.id,
          credential: call.caller.credential.id,
          input: { jobId: idOf(job), generation: job.metadata.generation },
          timeoutMs: job.spec.timeoutMs + marginMs,
        });
        return { execution };
      },
    }),
    operation({
      method: 'GET',
      path: '/cron/{id}/executions',
      operationId: 'listCronExecutions',
      summary: 'List the executions of a cron job',
      scope: 'read',
      query: z.object({ limit: queryInteger({ min: 1, max: maxExecutions }).default(20).describe('Most executions in the answer.') }),
      answer: {
        status: 200,
        description: 'The newest first.',
        schema: z.object({ executions: z.array(cronExecutionRecord).describe('The executions.') }),
      },
      errors: ['RESOURCE_NOT_FOUND'],
      handle: async (call) => {
        const job = await findToRead(call, 'HttpCronJob', call.params['id'] ?? '');
        const [id = null] = await idsInForce([job], call);
        const { cronExecutions } = call.services;
        const executions = id === null ? [] : await cronExecutions.newest(call.caller.organization.id, id, call.query.limit);
        return { executions: executions.map(executionToRecord) };
      },
    }),
    listCronSchedule,
  ],
};
