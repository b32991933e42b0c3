import { z } from 'zod';
import { defaultPayloadForm, payloadForms } from '../core/payload-link.ts';
import { defaultSignatureScheme, signatureSchemes } from '../core/signature-scheme.ts';
import { defineKind, type Rule } from './definition.ts';
import { circuitStatus, commonStatus, disableAfterHours, expiresAfterSeconds, reference, secretKeyRef } from './fields.ts';
import { headerTemplateRules, headerTemplates } from './header-template-list.ts';
import { staticHeaderRules, staticHeaders } from './http-header.ts';
import { ageColumn, enabledColumn, readyColumns } from './printer-columns.ts';
import { paragraph } from './text.ts';
import { httpUrl } from './url.ts';
import { disabledReasonRule } from './webhook-application.ts';

const wrongStatus = 'must be a status from 200 to 599, or a class of statuses such as 2xx';
const statusClass = /^[2-5][xX]{2}$/;
const successStatus = z
  .union([z.int().min(200).max(599), z.string().regex(statusClass, wrongStatus)])
  .meta({ 'x-kubernetes-int-or-string': true, minimum: 200, maximum: 599, pattern: statusClass.source });

const spec = z.strictObject({
  applicationRef: reference('WebhookApplication').describe('The WebhookApplication that it belongs to. Cannot be changed.'),
  url: httpUrl.describe(
    'Where messages are posted to: an https URL, and http where the installation allows it (POSTHORN_ALLOW_INSECURE_ENDPOINTS).',
  ),
  description: paragraph(0, 500).optional().describe('What this is for.'),
  signingSecretRef: secretKeyRef.describe(
    'The secret that messages are signed with: whsec_ + base64, for ed25519 a key whsk_ + base64, for both one of each, separated by a blank. While one is being replaced, the new one and behind it those that still sign, separated by blanks.',
  ),
  signatureScheme: z
    .enum(signatureSchemes)
    .optional()
    .describe(
      `Signatures in webhook-signature: hmac-sha256 (v1, by the whsec_ secrets), ed25519 (v1a, by the whsk_ keys) or both. Default: ${defaultSignatureScheme}.`,
    ),
  payloadForm: z
    .enum(payloadForms)
    .optional()
    .describe(
      `Body: full, the payload, or thin, a JSON object with a link to it, which needs POSTHORN_PUBLIC_URL. Default: ${defaultPayloadForm}.`,
    ),
  headers: staticHeaders(20).optional().describe('Sent with every message.'),
  headerTemplates: headerTemplates(20, 'endpoint')
    .optional()
    .describe('Headers whose values are made of the message for every attempt. One without a value is left out.'),
  timeoutSeconds: z.int().min(1).max(120).default(30).describe('One deadline over connect, headers and body, in seconds.'),
  rateLimitPerSecond: z
    .int()
    .min(0)
    .max(100_000)
    .default(0)
    .describe(
      "Messages in a second; more of them wait. 0: unlimited. After a pause one second's worth may go at once, so the first second may have twice as many; rateLimitStrict forbids that.",
    ),
  rateLimitStrict: z
    .boolean()
    .optional()
    .describe(
      'Messages go out evenly, one at a time, so no window of a second has more than rateLimitPerSecond. Very high rates may not be reached. Default: false.',
    ),
  ordered: z
    .boolean()
    .optional()
    .describe(
      'Messages go out in the order in which they were accepted, one at a time; a message that has failed is tried again before the next one is sent. Default: false.',
    ),
  retryDelaysSeconds: z
    .array(z.int().min(1).max(86_400))
    .min(1)
    .max(25)
    .meta({ 'x-kubernetes-list-type': 'atomic' })
    .optional()
    .describe(
      'Waits before the retries, in seconds: one for each retry, and no further one. Default: those of the installation (POSTHORN_WEBHOOK_RETRY_DELAYS).',
    ),
  expiresAfterSeconds: expiresAfterSeconds('to the endpoint'),
  successStatusCodes: z
    .array(successStatus)
    .min(1)
    .max(50)
    .meta({ 'x-kubernetes-list-type': 'atomic' })
    .optional()
    .describe(
      'Statuses that count as success, and no others: numbers from 200 to 599, or classes such as 2xx. One that is success is nothing else: a 410 does not disable, a 429 does not delay. Default: any 2xx.',
    ),
  circuit: z
    .strictObject({
      failureThreshold: z.int().min(1).max(1000).default(5).describe('Consecutive failed attempts that open the circuit.'),
      successThreshold: z.int().min(1).max(100).default(2).describe('Successful probes that close the circuit.'),
      cooldownSeconds: z.int().min(1).max(86_400).default(60).describe('Seconds that an open circuit waits before it is probed.'),
    })
    .optional()
    .describe('When deliveries to the failing endpoint pause.'),
  enabled: z
    .boolean()
    .default(true)
    .describe(
      'While false, events skip it and queued messages wait. An endpoint that answered 410, or failed for disableAfterHours, is disabled until the spec is changed.',
    ),
  disableAfterHours,
  disabledReason: paragraph(1, 500).optional().describe('Why it is not enabled.'),
});

/** Beside those that no configuration may set: Posthorn sets them itself. */
export const endpointOwnHeaders: readonly string[] = ['content-type', 'user-agent'];

const rules: readonly Rule[] = [
  {
    at: 'applicationRef.name',
    transition: true,
    cel: 'self == oldSelf',
    message: 'cannot be changed; make another endpoint',
    check: (self: string, oldSelf: string) => self === oldSelf,
  },
  ...staticHeaderRules('headers'),
  ...headerTemplateRules(''),
  ...['headers', 'headerTemplates'].map(
    (list): Rule => ({
      at: `${list}[].name`,
      cel: `!(self.lowerAscii() in [${endpointOwnHeaders.map((name) => `'${name}'`).join(', ')}])`,
      message: `is set by Posthorn: not ${endpointOwnHeaders.join(', ')}`,
      check: (self: string) => !endpointOwnHeaders.includes(self.toLowerCase()),
    }),
  ),
  disabledReasonRule,
];

export const webhookEndpoint = defineKind({
  kind: 'WebhookEndpoint',
  plural: 'webhookendpoints',
  singular: 'webhookendpoint',
  shortName: 'whep',
  scope: 'Namespaced',
  description: 'Where a customer receives events: a URL, the secret that messages are signed with, and how fast they may come.',
  idPrefix: 'ep_',
  noun: 'endpoint',
  recordKind: null,
  webhookKind: 'endpoint',
  world: 'both',
  isServed: false,
  workers: 8,
  hasSharedStatus: true,
  spec,
  status: z.strictObject({ ...commonStatus, circuit: circuitStatus.optional().describe('The circuit breaker of this endpoint.') }),
  rules,
  printerColumns: [
    ...readyColumns,
    { name: 'Application', type: 'string', jsonPath: '.spec.applicationRef.name' },
    enabledColumn,
    { name: 'Circuit', type: 'string', jsonPath: '.status.circuit.state' },
    { name: 'URL', type: 'string', jsonPath: '.spec.url', priority: 1 },
    ageColumn,
  ],
});
