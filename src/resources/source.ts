import { z } from 'zod';
import { defineKind } from './definition.ts';
import { commonStatus, description, displayName, secretKeyRef } from './fields.ts';
import { ageColumn, readyColumns } from './printer-columns.ts';
import { text } from './text.ts';

export const source = defineKind({
  kind: 'Source',
  plural: 'sources',
  singular: 'source',
  shortName: 'psrc',
  scope: 'Namespaced',
  description: 'Where events come in: a provider posts to /ingest/{organization}/{metadata.name}, and its signature is checked here.',
  idPrefix: 'src_',
  spec: z.strictObject({
    name: displayName.optional(),
    description: description.optional(),
    provider: z
      .enum(['generic', 'github', 'stripe', 'standard-webhooks'])
      .default('generic')
      .describe('Whose signature scheme is checked.'),
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
  }),
  status: z.strictObject({
    ...commonStatus,
    ingestPath: text(0, 200).optional().describe('Path that the provider posts to.'),
  }),
  rules: [
    {
      at: '',
      cel: '!(has(self.rejectInvalidSignatures) && self.rejectInvalidSignatures) || has(self.signingSecretRef)',
      message: 'needs a signingSecretRef when it is true',
      fieldPath: '.rejectInvalidSignatures',
      check: (self) => self.rejectInvalidSignatures !== true || self.signingSecretRef !== undefined,
    },
  ],
  printerColumns: [
    ...readyColumns,
    { name: 'Provider', type: 'string', jsonPath: '.spec.provider' },
    { name: 'Path', type: 'string', jsonPath: '.status.ingestPath', priority: 1 },
    ageColumn,
  ],
});
