import { z } from 'zod';
import { defineKind } from './definition.ts';
import { afterEpoch, commonStatus, displayName } from './fields.ts';
import { ageColumn, readyColumns } from './printer-columns.ts';
import { dateTime, text } from './text.ts';

/** A user of Kubernetes may have any text for its name: what is longer is cut. */
export const maxMakerName = 512;

const sha256 = text(64, 64).regex(/^[0-9a-f]{64}$/, 'must be 64 lower-case hex digits');

export const apiKey = defineKind({
  kind: 'ApiKey',
  plural: 'apikeys',
  singular: 'apikey',
  shortName: 'pkey',
  scope: 'Namespaced',
  description: 'A key of the REST API. Only its SHA-256 is stored; it acts in the organization of its namespace.',
  idPrefix: 'key_',
  noun: 'API key',
  recordKind: 'apiKey',
  world: 'both',
  isServed: true,
  workers: 4,
  isForAdmins: true,
  indexes: {
    keyHash: ({ sha256 }) => [sha256],
    keyMaker: ({ createdBy }) => (createdBy?.sha256 === undefined ? [] : [createdBy.sha256]),
  },
  spec: z.strictObject({
    name: displayName.optional(),
    sha256: sha256.describe('Hex SHA-256 of the whole key.'),
    prefix: text(0, 16).optional().describe('The first characters of the key, which distinguish keys.'),
    role: z
      .enum(['admin', 'developer', 'viewer'])
      .default('developer')
      .describe('admin: all; developer: all but keys; viewer: reads, secrets masked.'),
    scopes: z
      .array(z.enum(['read', 'write', 'delete']))
      .min(1)
      .max(3)
      .meta({ 'x-kubernetes-list-type': 'set' })
      .optional()
      .describe('What the key may do within its role; all when absent.'),
    createdBy: z
      .strictObject({
        name: text(1, maxMakerName).describe('Name of the key or the user.'),
        sha256: sha256
          .optional()
          .describe('SHA-256 of the key that made this one. This one is refused without it, and does no more and lives no longer than it.'),
      })
      .optional()
      .describe('Who made the key by the API; set by the API.'),
    expiresAt: dateTime
      .optional()
      .describe('RFC 3339 time after which the key is refused, and its condition Ready is False with the reason Expired.'),
  }),
  status: z.strictObject({ ...commonStatus }),
  rules: [afterEpoch('expiresAt')],
  printerColumns: [
    ...readyColumns,
    { name: 'Role', type: 'string', jsonPath: '.spec.role' },
    { name: 'Expires', type: 'string', jsonPath: '.spec.expiresAt' },
    ageColumn,
  ],
});
