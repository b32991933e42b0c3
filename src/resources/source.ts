import { z } from 'zod';
import { providers } from '../core/providers.ts';
import { defineKind } from './definition.ts';
import { commonStatus, description, displayName, secretKeyRef } from './fields.ts';
import { headerName } from './http-header.ts';
import { ageColumn, readyColumns } from './printer-columns.ts';
import { sourceRules } from './source-rules.ts';
import { text } from './text.ts';

const verification = z.strictObject({
  algorithm: z.enum(['sha1', 'sha256', 'sha512']).default('sha256').describe('Hash of the HMAC of the body.'),
  header: headerName.describe('Header that holds the signature.'),
  encoding: z.enum(['hex', 'base64']).default('hex').describe('How the signature is written.'),
  prefix: text(0, 64)
    .regex(/^[\x20-\x7e]*$/, 'must be printable ASCII')
    .default('')
    .describe('What stands before the signature in the header, such as sha256=.'),
});

const spec = z.strictObject({
  name: displayName.optional(),
  description: description.optional(),
  provider: z.enum(providers).default('generic').describe('Whose signature scheme is checked.'),
  verification: verification.optional().describe('How the sender signs; with provider custom, and only with it.'),
  signingSecretRef: secretKeyRef.optional().describe('The secret that the provider signs with. Without it signatures are not checked.'),
  rejectInvalidSignatures: z
    .boolean()
    .optional()
    .describe('Answer 401 to a wrong or missing signature. Default: true once there is a secret.'),
  allowedMethods: z
    .array(z.enum(['POST', 'PUT', 'PATCH', 'GET', 'DELETE']))
    .min(1)
    .max(5)
    .meta({ 'x-kubernetes-list-type': 'set' })
    .default(['POST'])
    .describe('Methods that the provider may use; 405 to others.'),
  enabled: z.boolean().default(true).describe('While false, the ingest path answers 403.'),
});

export const source = defineKind({
  kind: 'Source',
  plural: 'sources',
  singular: 'source',
  shortName: 'psrc',
  scope: 'Namespaced',
  description: 'Where events come in: a provider posts to /ingest/{organization}/{metadata.name}, and its signature is checked here.',
  idPrefix: 'src_',
  spec,
  status: z.strictObject({
    ...commonStatus,
    ingestPath: text(0, 200).optional().describe('Path that the provider posts to.'),
  }),
  rules: sourceRules,
  printerColumns: [
    ...readyColumns,
    { name: 'Provider', type: 'string', jsonPath: '.spec.provider' },
    { name: 'Path', type: 'string', jsonPath: '.status.ingestPath', priority: 1 },
    ageColumn,
  ],
});
