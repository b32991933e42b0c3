import { z } from 'zod';
import type { OrganizationRecord, Role } from '../../../core/records.ts';
import { cursorOf, cursorText } from '../../../data/shard/cursor.ts';
import { type Call, type Family, operation } from '../../http/operation.ts';
import { cursorPageOf, cursorPagination, cursorQuery } from '../../http/pagination.ts';
import { walkOrganizations } from '../../http/walk-organizations.ts';

const record = z
  .object({
    id: z.string().describe('Id of the organization.'),
    name: z.string().describe('The same as slug, under its name in the hosted API.'),
    slug: z.string().describe('Slug of the organization.'),
    role: z.enum(['admin', 'developer', 'viewer']).describe('What the caller may do there at most.'),
  })
  .meta({ id: 'Organization' });

/** The rights in each cost many reviews of access. */
const maxOfToken = 20;

export const organizations: Family = {
  name: 'Organizations',
  noun: 'organization',
  description: 'Where the caller may act: below `/api/organizations/{id}/`.',
  operations: [
    operation({
      method: 'GET',
      path: '/organizations',
      operationId: 'listOrganizations',
      summary: 'List organizations',
      description:
        'By slug: for an API key its own, for a Kubernetes token those in which it has rights. The page of a token has at most 20 and may be empty and lead on.',
      scope: 'read',
      query: z.object(cursorQuery),
      answer: { status: 200, description: 'By slug.', schema: cursorPageOf(record) },
      handle: async (call) => {
        const { limit, cursor } = call.query;
        const { credential, role, organization: own } = call.caller;
        const scope = `organizations ${credential.id}`;
        const after = cursor === undefined ? null : cursorText(cursor, scope);
        if (credential.type === 'apiKey') {
          const data = after === null ? [toRecord(own, role)] : [];
          return { data, pagination: cursorPagination(null) };
        }
        const { found, next } = await walkOrganizations(call.services.registry, {
          after,
          limit: credential.type === 'user' ? Math.min(limit, maxOfToken) : limit,
          see: (each) => roleIn(call, each),
        });
        return {
          data: found.map(({ record: { id, slug }, seen }) => toRecord({ id, slug }, seen)),
          pagination: cursorPagination(next === null ? null : cursorOf(next, scope)),
        };
      },
    }),
  ],
};

function toRecord({ id, slug }: { id: string; slug: string }, role: Role): z.input<typeof record> {
  return { id, name: slug, slug, role };
}

/** Null: it is not the caller's to see. */
async function roleIn({ caller: { credential, role }, services }: Call, { namespace }: OrganizationRecord): Promise<Role | null> {
  if (credential.type !== 'user') return role;
  const rights = await services.kubernetesCallers?.rightsIn(credential.user, namespace);
  return rights?.role ?? null;
}
