import { z } from 'zod';
import { isPosthornError, PosthornError } from '../../../core/errors.ts';
import { mailDomainProblem } from '../../../core/mail-domains.ts';
import { looksMasked } from '../../../core/masking.ts';
import { originOf } from '../../../core/origin.ts';
import { isUsableUrl } from '../../../core/url-problem.ts';
import { wording } from '../../../resources/complaints.ts';
import { emailAddress } from '../../../resources/email-address.ts';
import { fieldPath } from '../../../resources/field-tree.ts';
import { kinds, type PosthornObject, type SpecInputOf, type SpecOf } from '../../../resources/kinds.ts';
import { plainIssues } from '../../../resources/plain-issues.ts';
import { plainNumbers } from '../../../resources/plain-numbers.ts';
import { webhookUrlProblem } from '../../../resources/webhook-url.ts';
import type { Call } from '../../http/operation.ts';
import { readMasked, type SecretKeyRef } from '../../records/read-secret.ts';
import type { SentSecrets } from '../../records/secret-draft.ts';
import { sentHttpsUrl } from '../../records/url-fields.ts';
import { headerMap, headerValueOrMask } from '../shared/header-map.ts';
import { signingSecretsOrMask } from '../shared/signing-secret-fields.ts';

type Spec = SpecOf<'NotificationChannel'>;
type Type = Spec['type'];
type Blocks = Pick<SpecInputOf<'NotificationChannel'>, Type>;

const { severity } = kinds.NotificationChannel.spec.shape.pagerduty.unwrap().shape;
const mask = /^•{4}.{0,4}$/u;
const masked = z.string().regex(mask);
/** Or the mask of one, which is no URL. */
const webhookUrl = z.string().min(1).max(2048);
const url = sentHttpsUrl.describe('Absolute https URL without user and password.');

const webhookConfig = (id: string, service: string) =>
  z
    .strictObject({ webhookUrl: webhookUrl.describe(`https URL of the incoming webhook of ${service}; masked on read.`) })
    .meta({ id: `${id}ChannelConfig`, description: `With type ${id.toLowerCase()}.` });

/** `config` of each type, on write. */
const shapes = {
  slack: webhookConfig('Slack', 'Slack: https://hooks.slack.com/…'),
  teams: webhookConfig('Teams', 'Microsoft Teams'),
  discord: webhookConfig('Discord', 'Discord: https://discord.com/api/webhooks/…'),
  pagerduty: z
    .strictObject({
      routingKey: z.union([z.string().regex(/^[\x21-\x7e]{1,256}$/, 'must be the integration key'), masked]).describe('Masked on read.'),
      severity: severity
        .unwrap()
        .optional()
        .meta({ description: 'Severity of the incidents.', default: severity.parse(undefined) }),
    })
    .meta({ id: 'PagerDutyChannelConfig', description: 'With type pagerduty.' }),
  email: z
    .strictObject({
      addresses: z
        .array(emailAddress)
        .min(1)
        .max(50)
        .refine((all) => new Set(all).size === all.length, { error: 'must not name an address twice' })
        .describe('Who gets the alerts.'),
    })
    .meta({ id: 'EmailChannelConfig', description: 'With type email.' }),
  webhook: z
    .strictObject({
      url,
      headers: headerMap(headerValueOrMask, 20)
        .nullable()
        .optional()
        .describe('Sent with every alert; values are masked on read. On change it replaces the whole map.'),
      secret: signingSecretsOrMask
        .nullable()
        .optional()
        .describe('Alerts are signed with it (Standard Webhooks). Masked on read; null removes it.'),
    })
    .meta({ id: 'WebhookChannelConfig', description: 'With type webhook.' }),
} satisfies Record<Type, z.ZodObject>;

/** `config` as it is shown. */
export const configRecord = z.union([
  z
    .object({ webhookUrl: z.string().describe('URL of the incoming webhook, masked.') })
    .meta({ id: 'ShownIncomingWebhookConfig', description: 'With type slack, teams and discord.' }),
  z
    .object({
      routingKey: z.string().describe('The integration key, masked.'),
      severity: severity.unwrap().describe('Severity of the incidents.'),
    })
    .meta({ id: 'ShownPagerDutyConfig', description: 'With type pagerduty.' }),
  z
    .object({ addresses: z.array(z.string()).describe('Who gets the alerts.') })
    .meta({ id: 'ShownEmailConfig', description: 'With type email.' }),
  z
    .object({
      url: z.string().describe('Where alerts are posted to.'),
      headers: z.record(z.string(), z.string()).describe('Headers of the alerts; their values are masked.'),
      secret: z.string().nullable().describe('Alerts are signed with it; masked, null when there is none.'),
    })
    .meta({ id: 'ShownWebhookConfig', description: 'With type webhook.' }),
]);

/** `config` in a body. Its shape depends on the type, so `configToSpec` validates it, whose errors have a code of their own. */
const anyConfig = z
  .record(z.string(), z.unknown())
  .describe('Its shape depends on the type. Secrets are masked on read; a mask sent back keeps what is stored.');

const variantsOf = (all: readonly z.ZodObject[]) => ({
  anyOf: all.map((shape) => withoutDialect(z.toJSONSchema(shape, { io: 'input', unrepresentable: 'any' }))),
});

export const newConfigBody = anyConfig.meta(variantsOf(Object.values(shapes)));

/** On change what is not sent stays. */
export const configBody = anyConfig.meta(
  variantsOf(
    Object.values(shapes).map((shape): z.ZodObject => {
      const { id = '', description = '' } = shape.meta() ?? {};
      return z
        .strictObject(z.object(shape.shape).partial().shape)
        .meta({ id: `${id}Change`, description: `${description} What is not sent stays.` });
    }),
  ),
);

function withoutDialect({ $schema: _, ...schema }: z.core.JSONSchema.BaseSchema): Record<string, unknown> {
  return schema;
}

export async function configToRecord(object: PosthornObject<'NotificationChannel'>, call: Call): Promise<z.input<typeof configRecord>> {
  const { spec } = object;
  const shown = (ref: SecretKeyRef | undefined): Promise<string> | string => (ref === undefined ? '' : readMasked(call, object, ref));
  switch (spec.type) {
    case 'slack':
    case 'teams':
    case 'discord':
      return { webhookUrl: await shown(spec[spec.type]?.webhookUrlSecretRef) };
    case 'pagerduty':
      return {
        routingKey: await shown(spec.pagerduty?.routingKeySecretRef),
        severity: spec.pagerduty?.severity ?? severity.parse(undefined),
      };
    case 'email':
      return { addresses: spec.email?.addresses ?? [] };
    case 'webhook': {
      const { url: target = '', headers = [], signingSecretRef } = spec.webhook ?? {};
      const values = await Promise.all(headers.map(async ({ name, valueSecretRef }) => [name, await shown(valueSecretRef)]));
      const secret = signingSecretRef === undefined ? null : await shown(signingSecretRef);
      return { url: target, headers: Object.fromEntries(values), secret };
    }
  }
}

/**
 * The block of a spec that a sent config means; what is not sent of it stays. INVALID_CONFIG for what does not fit the type,
 * CREDENTIALS_REQUIRED when stored secrets would go to another host.
 */
export async function configToSpec(
  call: Call,
  type: Type,
  sent: Record<string, unknown> | undefined,
  current: Spec | undefined,
  secrets: SentSecrets,
): Promise<Blocks> {
  if (sent === undefined && current !== undefined) return { [type]: current[type] };
  try {
    return await blockOf(call, type, sent ?? {}, current, secrets);
  } catch (error) {
    if (isPosthornError(error, 'VALIDATION_FAILED')) throw new PosthornError('INVALID_CONFIG', error.message);
    throw error;
  }
}

async function blockOf(
  call: Call,
  type: Type,
  sent: Record<string, unknown>,
  current: Spec | undefined,
  secrets: SentSecrets,
): Promise<Blocks> {
  switch (type) {
    case 'slack':
    case 'teams':
    case 'discord': {
      const config = parsed(shapes[type], sent, current);
      const stored = current?.[type]?.webhookUrlSecretRef;
      const problem = config.webhookUrl === undefined || looksMasked(config.webhookUrl) ? null : webhookUrlProblem(type, config.webhookUrl);
      if (problem !== null) throw new PosthornError('INVALID_CONFIG', `config.webhookUrl ${problem}.`);
      return { [type]: { webhookUrlSecretRef: await kept('webhookUrl', config.webhookUrl, stored, secrets) } };
    }
    case 'pagerduty': {
      const config = parsed(shapes.pagerduty, sent, current);
      const stored = current?.pagerduty;
      const routingKeySecretRef = await kept('routingKey', config.routingKey, stored?.routingKeySecretRef, secrets);
      return { pagerduty: { routingKeySecretRef, severity: config.severity ?? stored?.severity } };
    }
    case 'email': {
      const before = current?.email?.addresses ?? [];
      const addresses = parsed(shapes.email, sent, current).addresses ?? before;
      const added = addresses.filter((address: string) => !before.includes(address));
      const problem = mailDomainProblem(added, call.services.mailDomains);
      if (problem !== null) throw new PosthornError('INVALID_CONFIG', `config.addresses: ${problem}.`);
      return { email: { addresses } };
    }
    case 'webhook':
      return { webhook: await webhookToSpec(call, parsed(shapes.webhook, sent, current), current?.webhook, secrets) };
  }
}

/** Without a current channel all that the shape requires must be there. */
function parsed<Shape extends z.ZodObject>(shape: Shape, sent: Record<string, unknown>, current: Spec | undefined) {
  const plain = plainNumbers(shape, sent);
  const { error } = (current === undefined ? shape : shape.partial()).safeParse(plain, { error: wording });
  if (error === undefined) return shape.partial().parse(plain);
  const complaints = plainIssues(error.issues).map((issue) =>
    issue.code === 'unrecognized_keys'
      ? `unknown field "${fieldPath(['config', ...issue.path, issue.keys[0] ?? ''])}"`
      : `${fieldPath(['config', ...issue.path])} ${issue.message}`,
  );
  throw new PosthornError('INVALID_CONFIG', `${complaints.slice(0, 5).join('; ')}.`);
}

async function webhookToSpec(
  call: Call,
  config: Partial<z.output<typeof shapes.webhook>>,
  current: Spec['webhook'],
  secrets: SentSecrets,
): Promise<NonNullable<Blocks['webhook']>> {
  const target = config.url ?? current?.url ?? '';
  if (!isUsableUrl(target)) throw new PosthornError('INVALID_CONFIG', 'config.url must be an absolute https URL.');
  const headers = config.headers === undefined ? current?.headers : await headersToSpec(config.headers ?? {}, current, secrets);
  const { secret } = config;
  const signingSecretRef =
    typeof secret === 'string'
      ? await secrets.put('secret', secret, current?.signingSecretRef, { path: 'config.secret' })
      : secret === null
        ? undefined
        : current?.signingSecretRef;
  const keepsValues = config.headers === undefined ? current?.headers?.length : Object.values(config.headers ?? {}).some(looksMasked);
  if (call.caller.role !== 'admin' && keepsValues && originOf(current?.url ?? '') !== originOf(target))
    throw new PosthornError('CREDENTIALS_REQUIRED', 'The URL has another origin: send config.headers with the values for it.');
  return { url: target, ...(headers?.length ? { headers } : {}), ...(signingSecretRef === undefined ? {} : { signingSecretRef }) };
}

async function headersToSpec(
  sent: Record<string, string>,
  current: Spec['webhook'],
  secrets: SentSecrets,
): Promise<{ name: string; valueSecretRef: SecretKeyRef }[]> {
  const list: { name: string; valueSecretRef: SecretKeyRef }[] = [];
  for (const [name, value] of Object.entries(sent)) {
    const stored = current?.headers?.find((header) => header.name === name)?.valueSecretRef;
    list.push({ name, valueSecretRef: await secrets.put('header', value, stored, { path: `config.headers.${name}` }) });
  }
  return list;
}

async function kept(
  field: string,
  value: string | undefined,
  current: SecretKeyRef | undefined,
  secrets: SentSecrets,
): Promise<SecretKeyRef> {
  if (value !== undefined) return secrets.put(field, value, current, { path: `config.${field}` });
  if (current === undefined) throw new PosthornError('INVALID_CONFIG', `config.${field} is required.`);
  return current;
}
