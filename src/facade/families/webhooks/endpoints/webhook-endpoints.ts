import { z } from 'zod';
import { PosthornError } from '../../../../core/errors.ts';
import type { SignatureScheme } from '../../../../core/signature-scheme.ts';
import { webhookOrganization } from '../../../../core/webhook.ts';
import { longestFillMs } from '../../../../data/shard/index-pages.ts';
import { changedEndpoint } from '../../../../data/webhooks/webhook-changes.ts';
import type { EndpointFilter } from '../../../../data/webhooks/webhooks.ts';
import { text } from '../../../../resources/text.ts';
import { type Call, type Family, operation } from '../../../http/operation.ts';
import { cursorPageOf, cursorPagination, cursorQuery, pagesAreFilled, unknownIds } from '../../../http/pagination.ts';
import { queryBoolean } from '../../../http/query.ts';
import { filterId } from '../../../records/filter-ids.ts';
import { atVersion, changeVersioned, tagged } from '../../../records/record-versions.ts';
import { deleted, isDeleted, single } from '../../shared/envelope.ts';
import { refuseThinWithoutAddress } from '../../shared/payload-form.ts';
import { refuseHeadersElsewhere } from '../../shared/static-headers.ts';
import { isManagedAsDesired, refuseManaged } from '../shared/managed.ts';
import { endpointChangeBody, endpointSettings, newEndpointBody, refuseWrongEndpoint } from './endpoint-fields.ts';
import { sealedEndpointHeaders } from './endpoint-headers.ts';
import { circuitState, type EndpointRecord, endpointRecord, endpointRecords, toEndpoint } from './endpoint-record.ts';
import { newEndpointSecret, newSealedKey, openedSecret, rotateEndpointSecret, sealedSecret } from './endpoint-secret.ts';
import { testEndpoint } from './endpoint-test.ts';
import { findEndpoint } from './find-endpoint.ts';

/** How often a list continues its search for endpoints in a rare state of the circuit. */
const secretWarning = 'Store the secret now: it is not shown again.';

const readOnly = Object.keys(endpointRecord.shape).filter((field) => !(field in endpointChangeBody.shape));
const readOnlyOnCreate = Object.keys(endpointRecord.shape).filter((field) => !(field in newEndpointBody.shape));

/** Shown once. */
const newEndpointRecord = endpointRecord
  .extend({ secret: z.string().describe('Signs its messages; shown only here.') })
  .meta({ id: 'NewWebhookEndpoint' });

export const webhookEndpoints: Family = {
  name: 'Webhook endpoints',
  noun: 'endpoint',
  description: 'Where the messages to an application are posted.',
  shown: {
    url: 'https://customer.example.com/webhooks',
    description: 'Production',
    headers: [{ name: 'X-Tenant', value: 'acme' }],
    headerTemplates: [{ name: 'X-Order', template: '{{ payload.order.id }}' }],
    timeoutSeconds: 30,
    rateLimitPerSecond: 0,
    rateLimitStrict: false,
    ordered: false,
    retryDelays: null,
    expiresAfterSeconds: null,
    successStatusCodes: null,
    circuitFailureThreshold: 5,
    circuitSuccessThreshold: 2,
    circuitCooldownSeconds: 60,
    circuitState: 'closed',
    circuitFailureCount: 0,
    secretPrefix: 'whsec_MfKQ…',
    secretVersion: 1,
    payloadForm: 'full',
    signatureScheme: 'hmac-sha256',
    publicKey: null,
    previousPublicKeys: [],
    isDisabled: false,
    disabledReason: null,
    disableAfterHours: null,
    totalMessages: 1203,
    totalSuccesses: 1200,
    totalFailures: 3,
    avgResponseTimeMs: 87.5,
    subscriptionCount: 3,
    secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=',
  },
  operations: [
    operation({
      method: 'GET',
      path: '/webhook-endpoints',
      operationId: 'listWebhookEndpoints',
      summary: 'List endpoints',
      description: `${pagesAreFilled} ${unknownIds}`,
      scope: 'read',
      query: z.object({
        applicationId: text(1, 128).optional().describe('Only of this application.'),
        isDisabled: queryBoolean.optional().describe('Only those that are disabled, or not.'),
        circuitState: circuitState.optional().describe('Only those with this state of their circuit.'),
        ...cursorQuery,
      }),
      answer: { status: 200, description: 'Newest first.', schema: cursorPageOf(endpointRecord) },
      errors: ['RESOURCE_NOT_FOUND'],
      handle: async (call) => {
        const { limit, cursor, circuitState: state, isDisabled, applicationId } = call.query;
        const filter = { isDisabled, applicationId: await filterId(call, 'WebhookApplication', applicationId) };
        const { records, nextCursor } = await listed(call, { filter, state, limit, cursor });
        return { data: records, pagination: cursorPagination(nextCursor) };
      },
    }),
    operation({
      method: 'POST',
      path: '/webhook-endpoints',
      operationId: 'createWebhookEndpoint',
      noun: 'application',
      summary: 'Create an endpoint',
      scope: 'write',
      body: newEndpointBody,
      readOnly: readOnlyOnCreate,
      requestExample: {
        applicationId: 'app_mzxw6ytboi4dsnrrgq3tkojqge',
        url: 'https://customer.example.com/webhooks',
        description: 'Production',
        headers: [{ name: 'X-Tenant', value: 'acme' }],
      },
      answer: {
        status: 201,
        description: 'The new endpoint, with its signing secret.',
        schema: single(newEndpointRecord).extend({
          warning: z.string().describe('That the secret is not shown again.'),
        }),
      },
      errors: ['RESOURCE_NOT_FOUND', 'INVALID_URL'],
      handle: async (call) => {
        const { applicationId, url, headers = [], ...rest } = call.body;
        const { id: org } = call.caller.organization;
        refuseWrongEndpoint(call.body, call.services.allowsInsecureEndpoints);
        refuseThinWithoutAddress(call, rest.payloadForm);
        const secret = newEndpointSecret();
        const endpoint = await call.services.webhooks.createEndpoint({
          org,
          mark: call.idempotency?.mark,
          applicationId,
          ...endpointSettings(rest),
          url,
          sealSecret: (id) => ({ ...sealedSecret(call, id, secret), version: 1, previous: [] }),
          ...(needsKey(rest) && { sealSigningKey: (id: string) => newSealedKey(call, id) }),
          sealHeaders: (id) => sealedEndpointHeaders(call, { org, id }, headers),
        });
        // Another one, when an equal, aborted request has made it.
        return { data: { ...(await toEndpoint(endpoint, call)), secret: openedSecret(call, endpoint) }, warning: secretWarning };
      },
    }),
    operation({
      method: 'GET',
      path: '/webhook-endpoints/{id}',
      operationId: 'getWebhookEndpoint',
      summary: 'Read an endpoint',
      scope: 'read',
      answer: { status: 200, description: 'The endpoint.', schema: single(endpointRecord) },
      errors: ['RESOURCE_NOT_FOUND'],
      isVersioned: true,
      handle: async (call) => ({ data: await toEndpoint(tagged(call, await findEndpoint(call, call.params['id'] ?? '')), call) }),
    }),
    operation({
      method: 'PATCH',
      path: '/webhook-endpoints/{id}',
      operationId: 'updateWebhookEndpoint',
      summary: 'Change an endpoint',
      description: 'Fields that are not sent stay unchanged.',
      scope: 'write',
      body: endpointChangeBody,
      readOnly,
      requestExample: { url: 'https://customer.example.com/v2/webhooks', timeoutSeconds: 10 },
      answer: { status: 200, description: 'The changed endpoint.', schema: single(endpointRecord) },
      errors: ['RESOURCE_NOT_FOUND', 'INVALID_URL', 'CREDENTIALS_REQUIRED', 'FIELD_MANAGED', 'CONFLICT'],
      isVersioned: true,
      handle: async (call) => {
        const current = await findEndpoint(call, call.params['id'] ?? '');
        const { applicationId, ...rest } = call.body;
        if (applicationId !== undefined && applicationId !== current.applicationId) {
          const details = { applicationId: ['cannot be changed'] };
          throw new PosthornError('VALIDATION_FAILED', 'applicationId cannot be changed.', { details });
        }
        refuseWrongEndpoint(rest, call.services.allowsInsecureEndpoints || rest.url === current.url, current);
        refuseThinWithoutAddress(call, rest.payloadForm, current.payloadForm);
        refuseHeadersElsewhere(call, current, { url: rest.url ?? current.url, headers: rest.headers });
        const { headers: sent, ...others } = rest;
        const headers = sent === undefined ? undefined : sealedEndpointHeaders(call, current, sent, current.headers);
        const signingKeyIfNone = needsKey(others) && current.signingKey === null ? newSealedKey(call, current.id) : undefined;
        const change = { ...endpointSettings(others), signingKeyIfNone, ...(headers !== undefined && { headers }) };
        const isAsWanted = isManagedAsDesired('endpoint', current, changedEndpoint(current, change));
        const changed = await changeVersioned(call, 'endpoint', current, async (revision) =>
          isAsWanted ? current : await call.services.webhooks.updateEndpoint(current.org, current.id, change, revision),
        );
        return { data: await toEndpoint(changed, call) };
      },
    }),
    operation({
      method: 'DELETE',
      path: '/webhook-endpoints/{id}',
      operationId: 'deleteWebhookEndpoint',
      summary: 'Delete an endpoint with its subscriptions',
      description: 'Queued deliveries become dead letters.',
      scope: 'delete',
      answer: { status: 200, description: 'It is deleted.', schema: deleted },
      errors: ['RESOURCE_NOT_FOUND', 'FIELD_MANAGED'],
      isVersioned: true,
      handle: async (call) => {
        const current = await findEndpoint(call, call.params['id'] ?? '');
        refuseManaged('endpoint', current);
        await atVersion(call, 'endpoint', current, (revision) => call.services.webhooks.deleteEndpoint(current.org, current.id, revision));
        return isDeleted;
      },
    }),
    rotateEndpointSecret,
    testEndpoint,
    operation({
      method: 'POST',
      path: '/webhook-endpoints/{id}/reset-circuit',
      operationId: 'resetWebhookEndpointCircuit',
      summary: 'Close the circuit of an endpoint',
      scope: 'write',
      answer: {
        status: 200,
        description: 'The circuit is closed.',
        schema: z.object({
          success: z.literal(true).describe('It is done.'),
          circuitState: z.literal('closed').describe('The state now.'),
        }),
      },
      errors: ['RESOURCE_NOT_FOUND'],
      handle: async (call) => {
        const { org, id, applicationId } = await findEndpoint(call, call.params['id'] ?? '');
        await call.services.circuits.reset(webhookOrganization(org), applicationId, [id]);
        return { success: true, circuitState: 'closed' };
      },
    }),
  ],
};

/** Whether an endpoint with this scheme needs an Ed25519 key. */
function needsKey({ signatureScheme }: { signatureScheme?: SignatureScheme | undefined }): boolean {
  return signatureScheme === 'ed25519' || signatureScheme === 'both';
}

interface Wanted {
  filter: EndpointFilter;
  state: EndpointRecord['circuitState'] | undefined;
  limit: number;
  cursor: string | undefined;
}

/** Scans for endpoints in a circuit state no longer than a page may take. */
async function listed(call: Call, wanted: Wanted): Promise<{ records: EndpointRecord[]; nextCursor: string | null }> {
  const { filter, state, limit } = wanted;
  const records: EndpointRecord[] = [];
  const beganMs = performance.now();
  let cursor: string | undefined = wanted.cursor;
  for (;;) {
    const page = { limit: limit - records.length, cursor };
    const { items, nextCursor } = await call.services.webhooks.endpoints(call.caller.organization.id, filter, page);
    const found = await endpointRecords(items, call);
    records.push(...found.filter((record) => state === undefined || record.circuitState === state));
    if (nextCursor === null || state === undefined || records.length === limit || performance.now() - beganMs >= longestFillMs)
      return { records, nextCursor };
    cursor = nextCursor;
  }
}
