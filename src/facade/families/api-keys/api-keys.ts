import { z } from 'zod';
import { newApiKey } from '../../../core/api-key-hash.ts';
import { PosthornError } from '../../../core/errors.ts';
import { earlier, type MadeKey, maxMakers, outranks, rightsWithinMakers } from '../../../core/key-rights.ts';
import { maxMakerName } from '../../../resources/api-key.ts';
import { installationManagers } from '../../../resources/installation-managers.ts';
import type { PosthornObject, SpecInputOf } from '../../../resources/kinds.ts';
import { kinds } from '../../../resources/kinds.ts';
import { byAge } from '../../../resources/metadata.ts';
import { grantableScopes } from '../../http/authorization.ts';
import { type Call, type Family, operation } from '../../http/operation.ts';
import { cutPage, pageOf, pageQuery } from '../../http/pagination.ts';
import { cachedObjects, find, idOf } from '../../records/lookup.ts';
import { foreignManagers } from '../../records/owned-spec.ts';
import {
  isoTime,
  isoTimeOrNull,
  nameOf,
  organizationId,
  recordIdentity,
  recordTimes,
  sentName,
  timesOf,
  timestamp,
} from '../../records/record-fields.ts';
import { madeBefore } from '../../records/request-keys.ts';
import { slugOf } from '../../records/slug.ts';
import { specField } from '../../records/spec-field.ts';
import { refuseForeign } from '../../records/write-rules.ts';
import { WriteTransaction } from '../../records/write-transaction.ts';

const role = z.enum(['admin', 'developer', 'viewer']).describe('What it may do at most.');
const scopes = z.array(z.enum(['read', 'write', 'delete'])).describe('What it may do.');

const record = z
  .object({
    id: recordIdentity.id,
    organizationId,
    name: recordIdentity.name,
    prefix: z.string().describe('The first characters of the key.'),
    keyPrefix: z.string().describe('The same as prefix.'),
    role,
    scopes,
    createdAt: recordTimes.createdAt,
    lastUsedAt: timestamp.nullable().describe('A minute exact.'),
    expiresAt: timestamp.nullable().describe('When it ends; null: never.'),
    createdBy: z
      .object({
        name: z.string().describe('Name of the key or the user.'),
        keyId: z
          .string()
          .nullable()
          .describe(
            'The key that created this one and whose end ends it; null: a user or the key of the installation created it, or that key no longer exists.',
          ),
      })
      .nullable()
      .describe('Who made it; null: it was declared as a resource.'),
  })
  .meta({ id: 'ApiKey' });

const keyItself = z.string().describe('The key itself, shown only here.');

const body = z.strictObject({
  name: sentName,
  role: specField(kinds.ApiKey.spec.shape.role, 'What it may do at most.'),
  scopes: scopes.min(1).max(3).optional().describe('All of the role when absent.'),
  expiresInDays: z
    .int()
    .min(1)
    .max(3650)
    .optional()
    .describe('Never when absent. A key that is made with a key ends no later than that one.'),
});

const dayMs = 86_400_000;

export const apiKeys: Family = {
  name: 'API keys',
  noun: 'API key',
  description:
    'Keys of this API. Only admins see and change them; a key itself is shown once. A key does no more, and lives no longer, than the key that made it.',
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
        const byHash = keysByHash(byName);
        const { items, pagination } = cutPage(byName, call.query);
        return { data: await Promise.all(items.map((object) => toRecord(object, call, byHash))), pagination };
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
      answer: {
        status: 201,
        description: 'The key is shown only here.',
        schema: z.object({
          apiKey: record.extend({ key: keyItself }).meta({ id: 'NewApiKey', description: 'The record.' }),
          key: keyItself,
        }),
      },
      handle: async (call) => {
        const { key, sha256, prefix } = newApiKey();
        const { name, expiresInDays } = call.body;
        const keyRole = call.body.role ?? 'developer';
        const excess = call.body.scopes?.find((scope) => !grantableScopes(keyRole).includes(scope));
        const wanted = [...new Set(call.body.scopes ?? grantableScopes(keyRole))];
        if (excess !== undefined) throw new PosthornError('VALIDATION_FAILED', `scopes: the role ${keyRole} cannot have ${excess}.`);
        const { credential, role: callerRole } = call.caller;
        if (outranks(keyRole, callerRole))
          throw new PosthornError('FORBIDDEN', `Your own role is ${callerRole}, which is less than ${keyRole}.`);
        const beyond = wanted.find((scope) => !call.caller.scopes.includes(scope));
        if (beyond !== undefined) throw new PosthornError('FORBIDDEN', `Your own key does not have the scope ${beyond}.`);
        const maker = credential.type === 'apiKey' && !(await isOfInstallation(call, credential)) ? credential : null;
        if (maker !== null && maker.makers >= maxMakers)
          throw new PosthornError(
            'FORBIDDEN',
            `A key has at most ${maxMakers} keys above it in its chain of creators; create this one with an older key.`,
          );
        const wantedEndMs = expiresInDays === undefined ? null : call.services.clock.now() + expiresInDays * dayMs;
        const endMs = maker === null ? wantedEndMs : earlier(wantedEndMs, maker.expiresAtMs);
        const spec = {
          name,
          sha256,
          prefix,
          role: keyRole,
          scopes: wanted,
          createdBy: { name: [...credential.name].slice(0, maxMakerName).join(''), ...(maker !== null && { sha256: maker.sha256 }) },
          expiresAt: endMs === null ? undefined : isoTime(endMs),
        } satisfies SpecInputOf<'ApiKey'>;
        const object = await WriteTransaction.run(call, {}, async (write) => {
          // The key of an aborted request was never shown.
          const lost = await madeBefore(call, 'ApiKey');
          if (lost !== null) await write.takeBack([lost]);
          return await write.create('ApiKey', { base: slugOf(name, 'key') }, async () => spec);
        });
        const makers = keysByHash(cachedObjects(call, 'ApiKey'));
        return { apiKey: { ...(await toRecord(object, call, makers)), key }, key };
      },
    }),
    operation({
      method: 'DELETE',
      path: '/api-keys/{id}',
      operationId: 'deleteApiKey',
      summary: 'Delete an API key',
      scope: 'delete',
      adminOnly: true,
      description: 'With it go the keys that it made, those that they made, and so on.',
      answer: { status: 204, description: 'It is deleted and no longer accepted.' },
      errors: ['RESOURCE_NOT_FOUND', 'FIELD_MANAGED'],
      handle: async (call) => {
        const object = await find(call, 'ApiKey', call.params['id'] ?? '');
        refuseForeign([object]);
        // From now on the keys that it made are refused, even if this process dies.
        const all = cachedObjects(call, 'ApiKey');
        const made = hasItsKey(object, all) ? madeBy(object, all) : [];
        for (const key of [object, ...made]) {
          await WriteTransaction.run(call, {}, (write) => write.delete([key]));
          await call.services.apiKeyUsage.forget(call.caller.organization.id, idOf(key));
        }
      },
    }),
  ],
};

type KeyObject = PosthornObject<'ApiKey'>;

/** Whether it is the key that the installation was given: changing it in the configuration must not end the keys that it made. */
async function isOfInstallation(call: Call, { id }: { id: string }): Promise<boolean> {
  const { metadata } = await find(call, 'ApiKey', id);
  return foreignManagers(metadata.managedFields ?? []).some((manager) => installationManagers.has(manager));
}

/** The keys by their SHA-256: of several that are declared with one, the oldest, which has the key. */
function keysByHash(all: readonly KeyObject[]): Map<string, KeyObject> {
  const oldestLast = all.toSorted((one, other) => byAge(other, one));
  return new Map(oldestLast.map((object) => [object.spec.sha256, object]));
}

/** Whether requests with the key are its own, and not those of an older one that is declared with the same SHA-256. */
function hasItsKey({ metadata, spec }: KeyObject, all: readonly KeyObject[]): boolean {
  return keysByHash(all).get(spec.sha256)?.metadata.uid === metadata.uid;
}

/** The keys of `all` that `object` made, those that they made, and so on; not those that others declare, which would come again. */
function madeBy(object: KeyObject, all: readonly KeyObject[]): KeyObject[] {
  const ended = new Set([object.spec.sha256]);
  const made = new Set<KeyObject>();
  for (let before = -1; made.size > before; ) {
    before = made.size;
    for (const key of all) {
      if (made.has(key) || key.spec.createdBy?.sha256 === undefined || !ended.has(key.spec.createdBy.sha256)) continue;
      made.add(key);
      ended.add(key.spec.sha256);
    }
  }
  return [...made].filter((key) => foreignManagers(key.metadata.managedFields ?? []).length === 0);
}

function rightsOf({ spec }: KeyObject): MadeKey {
  return {
    role: spec.role,
    scopes: spec.scopes ?? grantableScopes(spec.role),
    expiresAtMs: spec.expiresAt === undefined ? null : Date.parse(spec.expiresAt),
    makerSha256: spec.createdBy?.sha256,
  };
}

/** `byHash`: the keys of the organization by their SHA-256. The rights are those that the key has now; of one whose maker is gone, those that it had. */
async function toRecord(object: KeyObject, call: Call, byHash: ReadonlyMap<string, KeyObject>): Promise<z.input<typeof record>> {
  const { prefix = '', createdBy } = object.spec;
  const stored = rightsOf(object);
  const find = async (sha256: string): Promise<MadeKey | null> => {
    const maker = byHash.get(sha256);
    return maker === undefined ? null : rightsOf(maker);
  };
  const { role: keyRole, scopes: keyScopes, expiresAtMs } = (await rightsWithinMakers(stored, find)) ?? stored;
  const maker = byHash.get(createdBy?.sha256 ?? '');
  return {
    id: idOf(object),
    organizationId: call.caller.organization.id,
    name: nameOf(object),
    prefix,
    keyPrefix: prefix,
    role: keyRole,
    scopes: [...keyScopes],
    createdAt: timesOf(object).createdAt,
    lastUsedAt: isoTimeOrNull(await call.services.apiKeyUsage.lastUsedAtMs(call.caller.organization.id, idOf(object))),
    expiresAt: expiresAtMs === null ? null : isoTime(expiresAtMs),
    createdBy: createdBy === undefined ? null : { name: createdBy.name, keyId: maker === undefined ? null : idOf(maker) },
  };
}
