import { z } from 'zod';
import { defineKind } from './definition.ts';
import { commonStatus, displayName } from './fields.ts';
import { ageColumn, readyColumns } from './printer-columns.ts';

export const apiKey = defineKind({
  kind: 'ApiKey',
  plural: 'apikeys',
  singular: 'apikey',
  shortName: 'pkey',
  scope: 'Namespaced',
  description: 'A key of the REST API. Only its SHA-256 is stored; it acts in the organization of its namespace.',
  idPrefix: 'key_',
  spec: z.object({
    name: displayName.optional(),
    sha256: z.string().min(64).max(64).regex(/^[0-9a-f]{64}$/).describe('Hex SHA-256 of the whole key.'),
    prefix: z.string().max(16).optional().describe('The first characters of the key, to tell keys apart.'),
    role: z.enum(['admin', 'developer', 'viewer']).default('developer'),
    scopes: z.array(z.enum(['read', 'write', 'delete'])).max(3).meta({ 'x-kubernetes-list-type': 'set' }).optional().describe('What the key may do within its role; all when absent.'),
    expiresAt: z.string().max(64).meta({ format: 'date-time' }).optional().describe('RFC 3339 time after which the key is refused.'),
  }),
  status: z.object({ ...commonStatus }),
  rules: [],
  printerColumns: [
    ...readyColumns,
    { name: 'Role', type: 'string', jsonPath: '.spec.role' },
    { name: 'Expires', type: 'date', jsonPath: '.spec.expiresAt' },
    ageColumn,
  ],
});
