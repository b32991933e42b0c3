import { z } from 'zod';
import { PosthornError } from '../../../../core/errors.ts';
import { changedApplication } from '../../../../data/webhooks/webhook-changes.ts';
import type { WebhookApplication } from '../../../../data/webhooks/webhooks.ts';
import { webhookApplication } from '../../../../resources/webhook-application.ts';
import { type Call, type Family, operation } from '../../../http/operation.ts';
import { cursorPageOf, cursorPagination, cursorQuery } from '../../../http/pagination.ts';
import { queryBoolean, querySearch } from '../../../http/query.ts';
import { declaredId } from '../../../records/lookup.ts';
import { atVersion, changeVersioned, tagged } from '../../../records/record-versions.ts';
import { specField } from '../../../records/spec-field.ts';
import { deleted, isDeleted, single } from '../../shared/envelope.ts';
import { isManagedAsDesired, refuseManaged } from '../shared/managed.ts';
import { applicationFields, applicationRecord, applicationRecords, toApplication } from './application-record.ts';

const { externalId, name, metadata, isDisabled, disabledReason, disableAfterHours } = applicationFields;
const rateLimits = webhookApplication.spec.shape.rateLimits.unwrap().shape;
const settings = {
  metadata: metadata.optional(),
  rateLimitPerSecond: specField(rateLimits.perSecond, 'Messages in a second, to all its endpoints together.'),
  rateLimitPerMinute: specField(rateLimits.perMinute),
  rateLimitPerHour: specField(rateLimits.perHour),
  isDisabled: isDisabled.optional().meta({ default: false }),
  disabledReason: disabledReason.optional(),
  disableAfterHours: disableAfterHours.optional(),
};
const createBody = z.strictObject({ name, externalId: externalId.nullable().optional(), ...settings });
const upsertBody = z.strictObject({ externalId, name, ...settings });
const changeBody = z.strictObject({
  name: name.optional(),
  externalId: externalId.nullable().optional().describe('Cannot be changed.'),
  ...settings,
});

function readOnlyFor(body: z.ZodObject): string[] {
  return Object.keys(applicationRecord.shape).filter((field) => !(field in body.shape));
}

export const webhookApplications: Family = {
  name: 'Webhook applications',
  noun: 'application',
  description: 'The customers whose endpoints events are sent to.',
  shown: {
    externalId: 'customer-17',
    name: 'Acme Corporation',
    metadata: { region: 'eu' },
    rateLimitPerSecond: 100,
    rateLimitPerMinute: 1000,
    rateLimitPerHour: 10_000,
    isDisabled: false,
    disabledReason: null,
    disableAfterHours: null,
    totalEndpoints: 2,
    totalMessagesSent: 1200,
    totalMessagesFailed: 3,
  },
  operations: [
    operation({
      method: 'GET',
      path: '/webhook-applications',
      operationId: 'listWebhookApplications',
      summary: 'List applications',
      scope: 'read',
      query: z.object({
        search: querySearch.optional().describe('Part of the name or the external id.'),
        isDisabled: queryBoolean.optional().describe('Only those that are disabled, or not.'),
        orderBy: z.enum(['created_at', 'name']).default('created_at').describe('What they are sorted by.'),
        order: z.enum(['asc', 'desc']).default('desc').describe('asc: the smallest first.'),
        ...cursorQuery,
      }),
      answer: { status: 200, description: 'One page.', schema: cursorPageOf(applicationRecord) },
      handle: async (call) => {
        const { limit, cursor, ...filter } = call.query;
        const { items, nextCursor } = await call.services.webhooks.applications(call.caller.organization.id, filter, { limit, cursor });
        return { data: await applicationRecords(items, call), pagination: cursorPagination(nextCursor) };
      },
    }),
    operation({
      method: 'POST',
      path: '/webhook-applications',
      operationId: 'createWebhookApplication',
      summary: 'Create an application',
      scope: 'write',
      body: createBody,
      readOnly: readOnlyFor(createBody),
      requestExample: { name: 'Acme Corporation', externalId: 'customer-17', metadata: { region: 'eu' } },
      answer: { status: 201, description: 'The new application.', schema: single(applicationRecord) },
      errors: ['CONFLICT'],
      handle: async (call) => toApplication(await call.services.webhooks.createApplication(newApplication(call, call.body)), call),
    }),
    operation({
      method: 'PUT',
      path: '/webhook-applications/upsert',
      operationId: 'upsertWebhookApplication',
      summary: 'Create or change the application of an external id',
      description: 'Fields that are not sent stay unchanged. Of equal requests at the same time one creates and the others update.',
      scope: 'write',
      body: upsertBody,
      readOnly: readOnlyFor(upsertBody),
      requestExample: { externalId: 'customer-18', name: 'Initech', rateLimitPerSecond: 50 },
      answer: {
        status: 201,
        description: 'The new application.',
        schema: single(applicationRecord).extend({ created: z.boolean().describe('Whether it is new.') }),
        otherwise: { status: 200, description: 'The application, changed.' },
      },
      errors: ['FIELD_MANAGED', 'CONFLICT'],
      handle: async (call) => {
        const { webhooks } = call.services;
        const current = await webhooks.applicationByExternalId(call.caller.organization.id, call.body.externalId);
        const isAsWanted =
          current !== null && isManagedAsDesired('application', current, changedApplication(current, settingsOf(call.body)));
        const { application, created } = isAsWanted
          ? { application: current, created: false }
          : await webhooks.upsertApplication({ ...newApplication(call, call.body), externalId: call.body.externalId });
        if (!created) call.answerOtherwise();
        return { ...(await toApplication(application, call)), created };
      },
    }),
    operation({
      method: 'GET',
      path: '/webhook-applications/by-external-id/{externalId}',
      operationId: 'getWebhookApplicationByExternalId',
      summary: 'Read the application of an external id',
      scope: 'read',
      answer: { status: 200, description: 'The application.', schema: single(applicationRecord) },
      errors: ['RESOURCE_NOT_FOUND'],
      handle: async (call) => {
        const { externalId: wanted = '' } = call.params;
        const found = await call.services.webhooks.applicationByExternalId(call.caller.organization.id, wanted);
        if (found === null) throw new PosthornError('RESOURCE_NOT_FOUND', 'There is no application with this external id.');
        return toApplication(found, call);
      },
    }),
    operation({
      method: 'GET',
      path: '/webhook-applications/{id}',
      operationId: 'getWebhookApplication',
      summary: 'Read an application',
      scope: 'read',
      answer: { status: 200, description: 'The application.', schema: single(applicationRecord) },
      errors: ['RESOURCE_NOT_FOUND'],
      isVersioned: true,
      handle: async (call) => toApplication(tagged(call, await findApplication(call, call.params['id'] ?? '')), call),
    }),
    operation({
      method: 'PATCH',
      path: '/webhook-applications/{id}',
      operationId: 'updateWebhookApplication',
      summary: 'Change an application',
      description: 'Fields that are not sent stay unchanged.',
      scope: 'write',
      body: changeBody,
      readOnly: readOnlyFor(changeBody),
      requestExample: { isDisabled: true, disabledReason: 'The contract has ended.' },
      answer: { status: 200, description: 'The changed application.', schema: single(applicationRecord) },
      errors: ['RESOURCE_NOT_FOUND', 'FIELD_MANAGED', 'CONFLICT'],
      isVersioned: true,
      handle: async (call) => {
        const current = await findApplication(call, call.params['id'] ?? '');
        const { externalId: sent, ...rest } = call.body;
        if (sent !== undefined && sent !== current.externalId) {
          const details = { externalId: ['cannot be changed'] };
          throw new PosthornError('VALIDATION_FAILED', 'externalId cannot be changed.', { details });
        }
        const change = settingsOf(rest);
        const isAsWanted = isManagedAsDesired('application', current, changedApplication(current, change));
        const changed = await changeVersioned(call, 'application', current, async (revision) =>
          isAsWanted ? current : await call.services.webhooks.updateApplication(current.org, current.id, change, revision),
        );
        return toApplication(changed, call);
      },
    }),
    operation({
      method: 'DELETE',
      path: '/webhook-applications/{id}',
      operationId: 'deleteWebhookApplication',
      summary: 'Delete an application with its endpoints and their subscriptions',
      scope: 'delete',
      answer: { status: 200, description: 'It is deleted.', schema: deleted },
      errors: ['RESOURCE_NOT_FOUND', 'FIELD_MANAGED'],
      isVersioned: true,
      handle: async (call) => {
        const current = await findApplication(call, call.params['id'] ?? '');
        refuseManaged('application', current);
        await atVersion(call, 'application', current, (revision) =>
          call.services.webhooks.deleteApplication(current.org, current.id, revision),
        );
        return isDeleted;
      },
    }),
  ],
};

/** RESOURCE_NOT_FOUND when the organization has none with this id, and declares none of this name. */
async function findApplication(call: Call, idOrName: string): Promise<WebhookApplication> {
  const id = await declaredId(call, 'WebhookApplication', idOrName);
  const found = await call.services.webhooks.application(call.caller.organization.id, id);
  if (found === null) throw new PosthornError('RESOURCE_NOT_FOUND', 'There is no such application.');
  return found;
}

function newApplication({ services, caller, idempotency }: Call, sent: z.output<typeof createBody>) {
  const shard = Math.floor(Math.random() * services.shards());
  const { name: newName, externalId: newExternalId } = sent;
  return { ...settingsOf(sent), org: caller.organization.id, mark: idempotency?.mark, shard, name: newName, externalId: newExternalId };
}

/** Stored fields that all bodies have. */
function settingsOf({ externalId: _, ...sent }: z.output<typeof changeBody>) {
  const { rateLimitPerSecond: perSecond, rateLimitPerMinute: perMinute, rateLimitPerHour: perHour, ...rest } = sent;
  return { ...rest, rateLimits: { perSecond, perMinute, perHour } };
}
