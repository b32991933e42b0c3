import { z } from 'zod';
import { newApiKey } from '../../core/api-keys.ts';
import { PosthornError } from '../../core/errors.ts';
import type { PosthornObject, SpecInputOf } from '../../resources/kinds.ts';
import { grantableScopes } from '../authorization.ts';
import { type Call, type Family, operation } from '../operation.ts';
import { cutPage, pageOf, pageQuery } from '../pagination.ts';
import { awaitGone, awaitInForce } from '../resources/in-force.ts';
import { cachedObjects, find, idOf } from '../resources/lookup.ts';
import { isoTime, isoTimeOrNull, nameOf, sentName, timesOf, timestamp } from '../resources/record-fields.ts';
import { madeBefore } from '../resources/request-marks.ts';
import { slugOf } from '../resources/slug.ts';
import { createObject, deleteObject, refuseForeign } from '../resources/write.ts';

const role = z.enum(['admin', 'developer', 'viewer']);
const scopes = z.array(z.enum(['read', 'write', 'delete']));

const record = z
  .object({
    id: z.string(),
    name: z.string(),
    prefix: z.string().describe('The first characters of the key.'),
    role,
    scopes,
    createdAt: timestamp,
    lastUsedAt: timestamp.nullable().describe('A minute exact.'),
    expiresAt: timestamp.nullable(),
  })
  .meta({ id: 'ApiKey' });

const body = z.strictObject({
  name: sentName,
  role: role.optional().describe('developer when absent.'),
  scopes: scopes.min(1).max(3).optional().describe('All of the role when absent.'),
  expiresInDays: z.int().min(1).max(3650).optional().describe('Never when absent.'),
});

const dayMs = 86_400_000;

export const apiKeys: Family = {
  name: 'API keys',
  description: 'Keys of this API. Only admins see and change them; a key itself is shown once.',
  shown: { name: 'Build server', role: 'developer', scopes: ['read', 'write'] },
  operations: [
    operation({
      method: 'GET',
      path: '/api-keys',
      operationId: 'listApiKeys',
      summary: 'List API keys',
      scope: 'read',
      adminOnly: true,
      query: z.object(pageQuery),
      answer: { status: 200, description: 'One page, by name.', schema: pageOf(record) },
      handle: async (call) => {
        const byName = cachedObjects(call, 'ApiKey').sort((one, other) => (one.metadata.name < other.metadata.name ? -1 : 1));
        const { items, pagination } = cutPage(byName, call.query);
        return { data: await Promise.all(items.map((object) => toRecord(object, call))), pagination };
      },
    }),
    operation({
      method: 'POST',
      path: '/api-keys',
      operationId: 'createApiKey',
      summary: 'Create an API key',
      scope: 'write',
      adminOnly: true,
      body,
      readOnly: Object.keys(record.shape).filter((field) => !(field in body.shape)),
      requestExample: { name: 'Build server', role: 'developer', scopes: ['read', 'write'], expiresInDays: 90 },
      answer: { status: 201, description: 'The key is shown only here.', schema: z.object({ apiKey: record, key: z.string() }) },
      handle: async (call) => {
        const { key, sha256, prefix } = newApiKey();
        const { name, expiresInDays } = call.body;
        const keyRole = call.body.role ?? 'developer';
        const excess = call.body.scopes?.find((scope) => !grantableScopes(keyRole).includes(scope));
        const wanted = [...new Set(call.body.scopes ?? grantableScopes(keyRole))];
        if (excess !== undefined) throw new PosthornError('VALIDATION_FAILED', `scopes: the role ${keyRole} cannot have ${excess}.`);
        const beyond = wanted.find((scope) => !call.caller.scopes.includes(scope));
        if (beyond !== undefined) throw new PosthornError('FORBIDDEN', `Your own key does not have the scope ${beyond}.`);
        const spec = {
          name,
          sha256,
          prefix,
          role: keyRole,
          scopes: wanted,
          expiresAt: expiresInDays === undefined ? undefined : isoTime(call.services.clock.now() + expiresInDays * dayMs),
        } satisfies SpecInputOf<'ApiKey'>;
        // Nobody has seen the key of a request that was broken off.
        const lost = await madeBefore(call, 'ApiKey');
        if (lost !== null) await deleteObject(call, lost);
        const object = await createObject(call, 'ApiKey', { base: slugOf(name, 'key') }, async () => spec);
        await awaitInForce(call, 'ApiKey', object);
        return { apiKey: await toRecord(object, call), key };
      },
    }),
    operation({
      method: 'DELETE',
      path: '/api-keys/{id}',
      operationId: 'deleteApiKey',
      summary: 'Delete an API key',
      scope: 'delete',
      adminOnly: true,
      answer: { status: 204, description: 'It is deleted and no longer accepted.' },
      errors: ['RESOURCE_NOT_FOUND', 'FIELD_MANAGED'],
      handle: async (call) => {
        const object = await find(call, 'ApiKey', call.params['id'] ?? '');
        refuseForeign(object);
        await deleteObject(call, object);
        await awaitGone(call, 'ApiKey', object);
        await call.services.apiKeyUsage.forget(call.caller.organization.id, idOf(object));
      },
    }),
  ],
};

async function toRecord(object: PosthornObject<'ApiKey'>, call: Call): Promise<z.input<typeof record>> {
  const { prefix = '', role: keyRole, scopes: keyScopes, expiresAt } = object.spec;
  return {
    id: idOf(object),
    name: nameOf(object),
    prefix,
    role: keyRole,
    scopes: keyScopes ?? [...grantableScopes(keyRole)],
    createdAt: timesOf(object).createdAt,
    lastUsedAt: isoTimeOrNull(await call.services.apiKeyUsage.lastUsedAtMs(call.caller.organization.id, idOf(object))),
    expiresAt: expiresAt === undefined ? null : isoTime(Date.parse(expiresAt)),
  };
}
