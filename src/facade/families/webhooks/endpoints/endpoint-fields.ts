import { z } from 'zod';
import { isCredentialHeader } from '../../../../core/credential-names.ts';
import { PosthornError } from '../../../../core/errors.ts';
import { defaultPayloadForm } from '../../../../core/payload-link.ts';
import { defaultSignatureScheme } from '../../../../core/signature-scheme.ts';
import { isUsableUrl } from '../../../../core/url-problem.ts';
import type { WebhookEndpoint } from '../../../../data/webhooks/webhooks.ts';
import { headerName, isSettableHeader } from '../../../../resources/http-header.ts';
import { paragraph, text } from '../../../../resources/text.ts';
import { endpointOwnHeaders, webhookEndpoint } from '../../../../resources/webhook-endpoint.ts';
import { settingNotHad } from '../../../http/setting-not-had.ts';
import { shownField, specField } from '../../../records/spec-field.ts';
import { sentHttpUrl } from '../../../records/url-fields.ts';
import { headerValueOrMask } from '../../shared/header-map.ts';
import { templateText } from '../../shared/template-text.ts';

const spec = webhookEndpoint.spec.shape;
const circuit = spec.circuit.unwrap().shape;
const maxHeaders = 20;
const delaysText = 'Waits before the retries, in seconds: one for each retry, and no further one. Null: those of the installation.';
const expiryText =
  'Seconds after which a message to the endpoint is given up that has not been delivered: a dead letter whose last error is expired. Where the event or its type has fewer, these. Null: never.';
const statusesText =
  'Statuses that count as success, and no others: numbers from 200 to 599, or classes such as 2xx. One that is success is nothing else: a 410 does not disable, a 429 does not delay. Null: any 2xx.';

const schemeText =
  'Signatures in webhook-signature: hmac-sha256 (v1), ed25519 (v1a, by a key that Posthorn makes, which publicKey verifies) or both. The secret and the key stay when the scheme changes.';

const header = z
  .strictObject({ name: headerName.describe('Name of the header.'), value: headerValueOrMask.describe('Value of the header.') })
  .meta({ id: 'EndpointHeader', description: 'A header of every message.' });

const template = z
  .strictObject({
    name: headerName.describe('Name of the header.'),
    template: templateText('endpoint').describe(
      'Value of the header, with placeholders such as {{ event.type }} or {{ payload.order.id }}.',
    ),
  })
  .meta({ id: 'EndpointHeaderTemplate', description: 'A header whose value is made of the message.' });

/** Fields of an endpoint that can be set. */
export const endpointFields = {
  url: sentHttpUrl.describe('Where messages are posted to: https, and http where the installation allows it.'),
  description: paragraph(0, 500).describe('What this is for.'),
  headers: z
    .array(header)
    .max(maxHeaders)
    .describe(
      'Sent with every message, each name once; none that Posthorn, the connection or browsers alone set. Credentials are masked on read; a mask sent back keeps what is stored.',
    ),
  headerTemplates: z
    .array(template)
    .max(maxHeaders)
    .describe(
      'Headers whose values are made of the message for every attempt, each name once and none that headers has. One without a value is left out.',
    ),
  timeoutSeconds: shownField(spec.timeoutSeconds),
  rateLimitPerSecond: shownField(spec.rateLimitPerSecond),
  rateLimitStrict: shownField(spec.rateLimitStrict),
  ordered: shownField(spec.ordered),
  retryDelays: shownField(spec.retryDelaysSeconds, delaysText).nullable(),
  expiresAfterSeconds: shownField(spec.expiresAfterSeconds, expiryText).nullable(),
  successStatusCodes: shownField(spec.successStatusCodes, statusesText).nullable(),
  circuitFailureThreshold: shownField(circuit.failureThreshold),
  circuitSuccessThreshold: shownField(circuit.successThreshold),
  circuitCooldownSeconds: shownField(circuit.cooldownSeconds),
  payloadForm: shownField(spec.payloadForm),
  signatureScheme: shownField(spec.signatureScheme, schemeText),
  isDisabled: z.boolean().describe('Whether new events skip it and queued messages wait.'),
  disabledReason: paragraph(1, 500).nullable().describe('Why it is disabled. Enabling it removes the reason.'),
  disableAfterHours: shownField(spec.disableAfterHours).nullable(),
};

const pace = {
  timeoutSeconds: specField(spec.timeoutSeconds),
  rateLimitPerSecond: specField(spec.rateLimitPerSecond),
  rateLimitStrict: specField(spec.rateLimitStrict),
  ordered: specField(spec.ordered),
  retryDelays: endpointFields.retryDelays.optional(),
  expiresAfterSeconds: endpointFields.expiresAfterSeconds.optional(),
  successStatusCodes: endpointFields.successStatusCodes.optional(),
  payloadForm: endpointFields.payloadForm.optional().meta({ default: defaultPayloadForm }),
  signatureScheme: endpointFields.signatureScheme.optional().meta({ default: defaultSignatureScheme }),
  circuitFailureThreshold: specField(circuit.failureThreshold),
  circuitSuccessThreshold: specField(circuit.successThreshold),
  circuitCooldownSeconds: specField(circuit.cooldownSeconds),
};
const notHad = {
  backoffType: settingNotHad(z.literal('exponential').nullable(), 'Nothing but exponential, or null.'),
  ipAllowlistNotes: settingNotHad(z.null(), 'Nothing but null.'),
  useStaticIp: settingNotHad(z.literal(false), 'Nothing but false.'),
};

const description = endpointFields.description.nullable().optional().describe('What this is for.');
const headers = { headers: endpointFields.headers.optional(), headerTemplates: endpointFields.headerTemplates.optional() };
const disabling = {
  isDisabled: endpointFields.isDisabled.optional(),
  disabledReason: endpointFields.disabledReason.optional(),
  disableAfterHours: endpointFields.disableAfterHours.optional(),
};

export const newEndpointBody = z.strictObject({
  applicationId: text(1, 128).describe('Id of the application that it belongs to.'),
  url: endpointFields.url,
  description,
  ...headers,
  ...pace,
  ...disabling,
  ...notHad,
});

export const endpointChangeBody = z.strictObject({
  applicationId: text(1, 128).optional().describe('Cannot be changed.'),
  url: endpointFields.url.optional(),
  description,
  ...headers,
  ...pace,
  ...disabling,
  ...notHad,
});

type SentHeaders = Pick<z.output<typeof endpointChangeBody>, 'headers' | 'headerTemplates'>;

/** Checks beyond the schema. `stored`: values of fields that are not sent. INVALID_URL and VALIDATION_FAILED name the field. */
export function refuseWrongEndpoint(
  sent: SentHeaders & Pick<z.output<typeof endpointChangeBody>, 'url'>,
  allowsInsecureUrls: boolean,
  stored: Pick<WebhookEndpoint, 'headers' | 'headerTemplates'> = { headers: [], headerTemplates: [] },
): void {
  const { url } = sent;
  if (url !== undefined && !(isUsableUrl(url) && (allowsInsecureUrls || new URL(url).protocol === 'https:'))) {
    const complaint = `must be an absolute ${allowsInsecureUrls ? 'http or https' : 'https'} URL`;
    throw new PosthornError('INVALID_URL', `url ${complaint}.`, { details: { url: [complaint] } });
  }
  refuseWrongNames('headers', sent.headers ?? []);
  refuseWrongNames('headerTemplates', sent.headerTemplates ?? [], sent.headers ?? stored.headers);
  if (sent.headerTemplates === undefined) refuseWrongNames('headers', sent.headers ?? [], stored.headerTemplates);
}

/** `others`: what the name must not be among. */
function refuseWrongNames(list: keyof SentHeaders, sent: readonly Named[], others: readonly Named[] = []): void {
  for (const [index, { name }] of sent.entries()) {
    const isSame = (other: Named): boolean => other.name.toLowerCase() === name.toLowerCase();
    const complaint =
      !isSettableHeader(name) || endpointOwnHeaders.includes(name.toLowerCase())
        ? 'is set by Posthorn, the connection or browsers alone'
        : list === 'headerTemplates' && isCredentialHeader(name.toLowerCase())
          ? 'names a credential: that belongs in headers'
          : sent.findIndex(isSame) < index
            ? 'is there twice'
            : others.some(isSame)
              ? 'is both in headers and in headerTemplates'
              : null;
    if (complaint === null) continue;
    const field = `${list}[${index}].name`;
    throw new PosthornError('VALIDATION_FAILED', `${field} ${complaint}.`, { details: { [field]: [complaint] } });
  }
}

interface Named {
  name: string;
}

/** Stored fields that both bodies have. */
export function endpointSettings(sent: Omit<z.output<typeof endpointChangeBody>, 'applicationId'>) {
  const { circuitFailureThreshold, circuitSuccessThreshold, circuitCooldownSeconds, retryDelays, ...rest } = sent;
  return {
    ...rest,
    retryDelaysSeconds: retryDelays,
    circuit: {
      failureThreshold: circuitFailureThreshold,
      successThreshold: circuitSuccessThreshold,
      cooldownSeconds: circuitCooldownSeconds,
    },
  };
}
