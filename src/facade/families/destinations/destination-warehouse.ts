import { createPrivateKey } from 'node:crypto';
import { z } from 'zod';
import { PosthornError } from '../../../core/errors.ts';
import { readFieldMapping } from '../../../core/field-mapping.ts';
import { looksMasked, masked } from '../../../core/masking.ts';
import { originOf } from '../../../core/origin.ts';
import { withoutByteOrderMark } from '../../../core/payload-text.ts';
import { parsePlainJson } from '../../../core/plain-json.ts';
import { platformIdentityNotAllowed } from '../../../core/platform-identity.ts';
import { costlyKeyProblem } from '../../../core/private-keys.ts';
import { isUsableUrl } from '../../../core/url-problem.ts';
import { isSendable, sendableRule } from '../../../resources/http-header.ts';
import { kinds, type PosthornObject, type SpecInputOf, type SpecOf } from '../../../resources/kinds.ts';
import { hasWarehouses } from '../../../resources/plan-gates.ts';
import type { Call } from '../../http/operation.ts';
import { readSecret, type SecretKeyRef } from '../../records/read-secret.ts';
import type { SentSecrets } from '../../records/secret-draft.ts';
import { specField } from '../../records/spec-field.ts';
import { sentHttpsUrl } from '../../records/url-fields.ts';
import { redacted } from '../shared/redaction.ts';

/** `config` and `fieldMapping` of warehouse destinations. */

type Spec = SpecOf<'Destination'>;
type SpecInput = SpecInputOf<'Destination'>;
type WarehouseType = Exclude<Spec['type'], 'http'>;

const shape = kinds.Destination.spec.shape;
const warehouse = shape.warehouse.unwrap().shape;
const s3 = shape.s3.unwrap().shape;
const gcs = shape.gcs.unwrap().shape;
const azureBlob = shape.azureBlob.unwrap().shape;
const secretText = (most: number) => z.string().min(1).max(most);

/** All providers in one: `providers` has the fields of each type. */
export const warehouseConfig = z
  .strictObject({
    prefix: warehouse.prefix.unwrap().optional().describe('Path prefix of the files.'),
    fileFormat: specField(warehouse.fileFormat),
    partitionBy: specField(warehouse.partitionBy),
    identity: warehouse.identity
      .unwrap()
      .optional()
      .describe('platform: the identity of the delivery pods instead of keys, where the installation allows it.'),
    bucket: s3.bucket.optional().describe('With s3, r2 and gcs: required.'),
    region: s3.region.optional().describe('With s3: required.'),
    endpoint: sentHttpsUrl
      .refine(isUsableUrl, 'must be a URL')
      .optional()
      .describe('With r2, required: https URL of the S3 interface of the account.'),
    accessKeyId: s3.accessKeyId.unwrap().optional().describe('With s3 and r2.'),
    secretAccessKey: secretText(256).optional().describe('With s3 and r2. Masked on read.'),
    projectId: gcs.projectId.optional().describe('With gcs: required.'),
    serviceAccountKey: secretText(16_384).optional().describe('With gcs: JSON text. Masked on read.'),
    accountName: azureBlob.accountName.optional().describe('With azure_blob: required.'),
    containerName: azureBlob.containerName.optional().describe('With azure_blob: required.'),
    accountKey: secretText(512).optional().describe('With azure_blob: Base64 text. Masked on read.'),
  })
  .meta({
    id: 'WarehouseConfig',
    description:
      'Where and how a warehouse destination writes; its shape depends on type. What is not sent on change stays. Credentials are shown as four bullets and, from twelve characters on, their last four characters; sent back so they are kept.',
  });
type WarehouseConfig = z.output<typeof warehouseConfig>;
type ConfigField = keyof WarehouseConfig;
type SecretField = 'secretAccessKey' | 'serviceAccountKey' | 'accountKey';

export const fieldMapping = z
  .array(
    z
      .strictObject({
        source: z.string().min(1).max(512).describe('JSONPath (RFC 9535), for example rooted at $.payload.'),
        target: z.string().min(1).max(256).describe('Output column.'),
        type: z.enum(['string', 'number', 'boolean', 'timestamp', 'json']).describe('Type of the column.'),
        default: z.string().max(1024).optional().describe('Used where the source path is missing.'),
      })
      .meta({ id: 'FieldMappingRule', description: 'A column of the records.' }),
  )
  .max(50)
  .describe('Columns of the records; without it a record is {id, source, receivedAt, headers, payload}.');

const common = ['prefix', 'fileFormat', 'partitionBy', 'identity'] as const satisfies ConfigField[];
interface Provider {
  place: readonly ConfigField[];
  keys: readonly ConfigField[];
  secret: SecretField;
  /** The config field that determines the host; null: it is always the provider's own. */
  host: 'endpoint' | 'accountName' | null;
}
const providers: Record<WarehouseType, Provider> = {
  s3: { place: ['bucket', 'region'], keys: ['accessKeyId', 'secretAccessKey'], secret: 'secretAccessKey', host: null },
  r2: { place: ['bucket', 'endpoint'], keys: ['accessKeyId', 'secretAccessKey'], secret: 'secretAccessKey', host: 'endpoint' },
  gcs: { place: ['bucket', 'projectId'], keys: ['serviceAccountKey'], secret: 'serviceAccountKey', host: null },
  azure_blob: { place: ['accountName', 'containerName'], keys: ['accountKey'], secret: 'accountKey', host: 'accountName' },
};

/** Placeholder for a credential that an import lacks. It has the form of a real one. */
const placeholders: Record<SecretField, string> = {
  secretAccessKey: redacted,
  serviceAccountKey: JSON.stringify({ client_email: redacted, private_key: redacted }),
  accountKey: Buffer.from(redacted).toString('base64'),
};

/** How a warehouse's credentials are shown; null: it cannot be read at the moment. */
export function shownCredential(value: string | null): string {
  return masked(value ?? '');
}

/** The settings of a spec that are not those of every destination. `show` makes of a secret what the record shows of it. */
export async function warehouseToRecord(
  spec: Spec,
  show: (ref: SecretKeyRef) => Promise<string>,
): Promise<{ config: WarehouseConfig; fieldMapping: z.output<typeof fieldMapping> }> {
  const { prefix, fileFormat = 'jsonl', partitionBy = 'date', identity = 'keys', fieldMapping: rules = [] } = spec.warehouse ?? {};
  const { place, ref, secret } = storedConfig(spec);
  const { accessKeyId, ...rest } = place;
  // A custom resource may have keys beside it that are not used.
  const hasKeys = identity === 'keys';
  return {
    config: {
      ...rest,
      ...(hasKeys && accessKeyId !== undefined && { accessKeyId }),
      ...(hasKeys && ref !== undefined && secret !== null && { [secret]: await show(ref) }),
      ...(prefix !== undefined && { prefix }),
      fileFormat,
      partitionBy,
      identity,
    },
    fieldMapping: rules.map(({ default: fallback, ...rule }) => ({ ...rule, ...(fallback !== undefined && { default: fallback }) })),
  };
}

/** The blocks of a warehouse's spec. FORBIDDEN below the plan pro, VALIDATION_FAILED for what does not fit the type. */
export async function warehouseToSpec(
  type: WarehouseType,
  sent: { config?: WarehouseConfig; fieldMapping?: z.output<typeof fieldMapping> | null },
  { current, call, secrets }: { current: Spec | undefined; call: Call; secrets: SentSecrets },
): Promise<Pick<SpecInput, 'warehouse' | 's3' | 'r2' | 'gcs' | 'azureBlob'>> {
  const { plan } = call.caller.organization;
  if (current === undefined && !hasWarehouses(plan)) {
    throw new PosthornError('FORBIDDEN', `Warehouse destinations need the plan pro or above; this organization has ${plan}.`);
  }
  const provider = providers[type];
  const config = sent.config ?? {};
  if (current === undefined && sent.config === undefined) throw new PosthornError('VALIDATION_FAILED', 'config is required.');
  const known: readonly string[] = [...common, ...provider.place, ...provider.keys];
  const misfit = Object.keys(config).find((field) => !known.includes(field));
  if (misfit !== undefined) throw new PosthornError('VALIDATION_FAILED', `config.${misfit} does not belong to type ${type}.`);
  const stored = current === undefined ? null : storedConfig(current);
  if (config.accessKeyId !== stored?.place.accessKeyId && !isSendable(config.accessKeyId ?? ''))
    throw new PosthornError('VALIDATION_FAILED', `config.accessKeyId ${sendableRule}.`);
  const merged: WarehouseConfig = { ...stored?.place, ...config };
  const identity = config.identity ?? current?.warehouse?.identity ?? 'keys';
  // The user names the host: it would get what the pods' identity signs.
  if (identity === 'platform' && type === 'r2') {
    throw new PosthornError('VALIDATION_FAILED', 'config.identity cannot be platform with type r2.');
  }
  const isNewlyPlatform = identity === 'platform' && (config.identity !== undefined || current?.warehouse?.identity !== 'platform');
  if (isNewlyPlatform && !call.services.allowsPlatformIdentity)
    throw new PosthornError('VALIDATION_FAILED', `config.identity cannot be platform: ${platformIdentityNotAllowed}.`);
  const key = provider.keys.find((field) => config[field] !== undefined);
  if (identity === 'platform' && key !== undefined)
    throw new PosthornError('VALIDATION_FAILED', `config.${key} is not used with identity platform: leave it out, or send identity keys.`);
  const needed = identity === 'platform' ? provider.place : [...provider.place, ...provider.keys];
  for (const field of needed) {
    const isStored = field === provider.secret && stored?.ref !== undefined;
    if (merged[field] === undefined && !isStored) throw new PosthornError('VALIDATION_FAILED', `config.${field} is required.`);
  }
  const losesKeys = identity === 'platform' && current?.warehouse?.identity !== 'platform';
  if (!losesKeys) refuseOtherHost(provider, merged, { sent: config, stored, call });
  const ref = losesKeys ? undefined : await secretRef(provider.secret, config[provider.secret], stored?.ref, secrets);
  return {
    warehouse: {
      ...current?.warehouse,
      prefix: config.prefix ?? current?.warehouse?.prefix,
      fileFormat: config.fileFormat ?? current?.warehouse?.fileFormat,
      partitionBy: config.partitionBy ?? current?.warehouse?.partitionBy,
      identity,
      fieldMapping: sent.fieldMapping === undefined ? current?.warehouse?.fieldMapping : checkedMapping(sent.fieldMapping),
    },
    ...blockOf(type, losesKeys ? { ...merged, accessKeyId: undefined } : merged, ref),
  };
}

/** Whether the destination was imported without its credential, and has none yet. */
export async function lacksStoreCredential(
  object: PosthornObject<'Destination'>,
  sent: WarehouseConfig | undefined,
  call: Call,
): Promise<boolean> {
  const { spec } = object;
  const { ref, secret } = storedConfig(spec);
  if (ref === undefined || secret === null || (sent?.identity ?? spec.warehouse?.identity) === 'platform') return false;
  const value = sent?.[secret];
  return (value === undefined || looksMasked(value)) && (await readSecret(call, object, ref)) === placeholders[secret];
}

/** The config without masked credentials, which are kept or replaced by placeholders; `isMissing`: a placeholder was used. */
export function importedConfig(
  config: WarehouseConfig | undefined,
  current: Spec | undefined,
): { config: WarehouseConfig | undefined; isMissing: boolean } {
  const secret = (['secretAccessKey', 'serviceAccountKey', 'accountKey'] as const).find((field) => {
    const value = config?.[field];
    return value !== undefined && (value === redacted || value === placeholders[field] || looksMasked(value));
  });
  if (config === undefined || secret === undefined) return { config, isMissing: false };
  const { [secret]: _, ...rest } = config;
  if (current !== undefined && storedConfig(current).ref !== undefined) return { config: rest, isMissing: false };
  return { config: { ...rest, [secret]: placeholders[secret] }, isMissing: true };
}

function storedConfig({ type, s3: ofS3, r2: ofR2, gcs: ofGcs, azureBlob: ofAzure }: Spec): {
  place: WarehouseConfig;
  ref: SecretKeyRef | undefined;
  secret: SecretField | null;
} {
  switch (type) {
    case 's3':
    case 'r2': {
      const { secretAccessKeySecretRef: ref, ...place } = (type === 's3' ? ofS3 : ofR2) ?? {};
      return { place, ref, secret: 'secretAccessKey' };
    }
    case 'gcs': {
      const { serviceAccountKeySecretRef: ref, ...place } = ofGcs ?? {};
      return { place, ref, secret: 'serviceAccountKey' };
    }
    case 'azure_blob': {
      const { accountKeySecretRef: ref, ...place } = ofAzure ?? {};
      return { place, ref, secret: 'accountKey' };
    }
    case 'http':
      return { place: {}, ref: undefined, secret: null };
    default:
      return type satisfies never;
  }
}

/** Refuses another host unless the caller sends the credential again: a caller who cannot read it must not receive it at a host of their own. */
function refuseOtherHost(
  { host, secret }: Provider,
  merged: WarehouseConfig,
  { sent, stored, call }: { sent: WarehouseConfig; stored: ReturnType<typeof storedConfig> | null; call: Call },
): void {
  if (host === null || stored?.ref === undefined || call.caller.role === 'admin') return;
  const value = sent[secret];
  if (value !== undefined && !looksMasked(value)) return;
  if (originOf(stored.place[host] ?? '') !== originOf(merged[host] ?? ''))
    throw new PosthornError('CREDENTIALS_REQUIRED', `config.${host} names another host: send config.${secret} with it.`);
}

function secretRef(
  field: SecretField,
  value: string | undefined,
  current: SecretKeyRef | undefined,
  secrets: SentSecrets,
): Promise<SecretKeyRef> | SecretKeyRef | undefined {
  if (value === undefined) return current;
  const problem = looksMasked(value) || value === placeholders[field] ? null : problemWith(field, value);
  if (problem !== null) throw new PosthornError('VALIDATION_FAILED', `config.${field} ${problem}.`);
  return secrets.put(field, value, current, { path: `config.${field}` });
}

function problemWith(field: SecretField, value: string): string | null {
  switch (field) {
    case 'secretAccessKey':
      return null;
    case 'accountKey':
      return /^[A-Za-z0-9+/]+={0,2}$/.test(value.trim()) ? null : 'is no Base64 text';
    case 'serviceAccountKey': {
      const key = serviceAccountKey.safeParse(value);
      if (!key.success) return 'is no JSON key of a service account';
      const { private_key: pem } = key.data;
      const costly = costlyKeyProblem(pem);
      if (costly !== null) return `has a private_key that ${costly}`;
      return isRsaKey(pem) ? null : 'has a private_key that is no RSA key in PEM';
    }
    default:
      return field satisfies never;
  }
}

const serviceAccountKey = z
  .string()
  .transform((text, context): unknown => {
    try {
      return parsePlainJson(withoutByteOrderMark(text));
    } catch {
      context.addIssue('is not JSON');
      return z.NEVER;
    }
  })
  .pipe(z.object({ client_email: z.string(), private_key: z.string() }));

function isRsaKey(pem: string): boolean {
  try {
    return createPrivateKey(pem).asymmetricKeyType === 'rsa';
  } catch {
    return false;
  }
}

function checkedMapping(rules: z.output<typeof fieldMapping> | null): z.output<typeof fieldMapping> | undefined {
  if (rules === null || rules.length === 0) return undefined;
  const sent = rules.map(({ default: fallback, ...rule }) => ({ ...rule, ...(fallback !== undefined && { default: fallback }) }));
  const { problem } = readFieldMapping(sent);
  if (problem !== undefined)
    throw new PosthornError('VALIDATION_FAILED', `fieldMapping[${problem.index}].${problem.field} ${problem.message}.`);
  return rules;
}

function blockOf(
  type: WarehouseType,
  { bucket = '', region = '', endpoint = '', projectId = '', accountName = '', containerName = '', accessKeyId }: WarehouseConfig,
  ref: SecretKeyRef | undefined,
): Pick<SpecInput, 's3' | 'r2' | 'gcs' | 'azureBlob'> {
  switch (type) {
    case 's3':
      return { s3: { bucket, region, accessKeyId, secretAccessKeySecretRef: ref } };
    case 'r2':
      return { r2: { bucket, endpoint, accessKeyId, secretAccessKeySecretRef: ref } };
    case 'gcs':
      return { gcs: { bucket, projectId, serviceAccountKeySecretRef: ref } };
    case 'azure_blob':
      return { azureBlob: { accountName, containerName, accountKeySecretRef: ref } };
    default:
      return type satisfies never;
  }
}
