import { z } from 'zod';
import { handshakes, providerNames } from '../core/providers/providers.ts';
import { awaitsSigningSecret } from './awaited-secret.ts';
import { cidr } from './cidr.ts';
import { defineKind } from './definition.ts';
import { commonStatus, description, displayName, secretKeyRef } from './fields.ts';
import { headerName } from './http-header.ts';
import { ageColumn, enabledColumn, readyColumns } from './printer-columns.ts';
import { sourceRules } from './source-constraints.ts';
import { dateTime, text } from './text.ts';

const verification = z.strictObject({
  algorithm: z.enum(['sha1', 'sha256', 'sha512']).default('sha256').describe('Hash of the HMAC of the body.'),
  header: headerName.describe('Header that contains the signature.'),
  encoding: z.enum(['hex', 'base64']).default('hex').describe('How the signature is written.'),
  prefix: text(0, 64)
    .regex(/^[\x20-\x7e]*$/, 'must be printable ASCII')
    .default('')
    .describe('Prefix of the signature in the header, such as sha256=.'),
});

const rotation = z.strictObject({
  previousSecretRef: secretKeyRef.describe('The secret that was in signingSecretRef before.'),
  validUntil: dateTime.describe('Until then signatures of the previous secret are taken too.'),
});

const handshake = z.strictObject({
  type: z
    .enum(handshakes)
    .describe(
      'Which question is answered: hub.challenge (Meta, WebSub), validationToken (Microsoft Graph), challenge (Dropbox), crc_token (X), or OPTIONS with WebHook-Request-Origin (CloudEvents).',
    ),
  verifyTokenSecretRef: secretKeyRef
    .optional()
    .describe('With type hub_challenge: what hub.verify_token must be. Without it every subscription is confirmed.'),
});

const networks = z.array(cidr).max(100).meta({ 'x-kubernetes-list-type': 'set' });

const ipFilter = z.strictObject({
  mode: z
    .enum(['none', 'allowlist', 'denylist', 'both'])
    .default('none')
    .describe('Which lists count. With both, an address must be in the allowlist and not in the denylist.'),
  allowlist: networks.optional().describe('Networks that may send, as CIDR.'),
  denylist: networks.optional().describe('Networks that may not send, as CIDR.'),
});

const dedup = z.strictObject({
  strategy: z
    .enum(['auto', 'provider_id', 'payload_hash', 'idempotency_key', 'none'])
    .default('auto')
    .describe(
      'What makes two events the same: the delivery id of the provider, where there is one (auto) or always (provider_id), the body, the header Idempotency-Key, or nothing.',
    ),
  header: headerName.optional().describe('Header that contains the id, instead of the one that the strategy reads.'),
  windowHours: z.int().min(1).max(168).default(24).describe('Hours for which the same event is a duplicate.'),
});

const spec = z.strictObject({
  name: displayName.optional(),
  description: description.optional(),
  provider: z.enum(providerNames).default('generic').describe('Whose signature scheme is checked.'),
  verification: verification.optional().describe('How the sender signs; with provider custom, and only with it.'),
  signingSecretRef: secretKeyRef
    .optional()
    .describe(
      'The secret that the provider signs with; of standard-webhooks and svix also the whpk_ public keys of the sender, for v1a. Without it signatures are not checked.',
    ),
  rotation: rotation.optional().describe('While signingSecretRef is being replaced: the secret before it.'),
  rejectInvalidSignatures: z
    .boolean()
    .optional()
    .describe('Answer 401 to a wrong or missing signature. Default: true once there is a secret.'),
  awaitsSigningSecret,
  rateLimitPerMinute: z
    .int()
    .min(1)
    .max(1_000_000)
    .optional()
    .describe('Requests that are taken in a minute; 429 to more. Unlimited when absent.'),
  ipFilter: ipFilter.optional().describe('Which addresses may send; 403 to others.'),
  dedup: dedup.optional().describe('How duplicates of an event are detected. Default: strategy auto, 24 hours.'),
  handshake: handshake
    .optional()
    .describe(
      'A verification request that the sender makes before it sends events; it is answered regardless of allowedMethods, and is not an event.',
    ),
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
  noun: 'source',
  recordKind: 'source',
  world: 'both',
  isServed: true,
  workers: 4,
  isIntake: true,
  spec,
  status: z.strictObject({
    ...commonStatus,
    ingestPath: text(0, 200).optional().describe('Path that the provider posts to.'),
  }),
  rules: sourceRules,
  printerColumns: [
    ...readyColumns,
    { name: 'Provider', type: 'string', jsonPath: '.spec.provider' },
    enabledColumn,
    { name: 'Path', type: 'string', jsonPath: '.status.ingestPath', priority: 1 },
    ageColumn,
  ],
});
