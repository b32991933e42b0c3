import { readFieldMapping } from '../core/field-mapping.ts';
import { platformIdentityNotAllowed } from '../core/platform-identity.ts';
import { costlyKeyProblem } from '../core/private-keys.ts';
import type { AccessKeyRecord, DestinationRecord, FieldMappingRule, ObjectStoreRecord, WarehouseRecord } from '../core/records.ts';
import type { SealedRecordField } from '../core/sealing-contexts.ts';
import { serviceAccountIn } from '../core/service-account.ts';
import { urlProblem } from '../core/url-problem.ts';
import { isSendable, sendableRule } from '../resources/http-header.ts';
import type { SpecOf } from '../resources/kinds.ts';
import { type Compiled, type Refusal, refuse } from './compiled.ts';
import type { Seal } from './sealed-value.ts';

type Spec = SpecOf<'Destination'>;

interface WarehouseInputs {
  secrets: Partial<Record<SealedRecordField, string>>;
  published: DestinationRecord | null;
}

/** Refusals of a warehouse that need no secrets. */
export function warehouseRefusal({ type, s3, r2, gcs, azureBlob, warehouse }: Spec): Refusal | null {
  if ((s3 ?? r2 ?? gcs ?? azureBlob) === undefined) return { reason: 'Incomplete', message: `spec has no settings for type ${type}` };
  const endpointProblem = r2 === undefined ? null : urlProblem(r2.endpoint);
  if (endpointProblem !== null) return { reason: 'InvalidUrl', message: `spec.r2.endpoint ${endpointProblem}` };
  if (r2 !== undefined && warehouse?.identity === 'platform')
    return { reason: 'InvalidCredentials', message: 'spec.warehouse.identity cannot be platform with type r2' };
  const { problem } = readFieldMapping(rulesOf(warehouse));
  if (problem === undefined) return null;
  const { index, field, message } = problem;
  return { reason: 'InvalidFieldMapping', message: `spec.warehouse.fieldMapping[${index}].${field} ${message}` };
}

/** Returns the refusal of a warehouse that needs what the installation does not allow. */
export function platformIdentityRefusal({ warehouse }: Spec): Refusal | null {
  if (warehouse?.identity !== 'platform') return null;
  return { reason: 'PlatformIdentityNotAllowed', message: `spec.warehouse.identity cannot be platform: ${platformIdentityNotAllowed}` };
}

/** How files are written, and where; refuses credentials that are missing, or that cannot be ones of the service. */
export function compileWarehouse(
  spec: Spec,
  { secrets, published }: WarehouseInputs,
  seal: Seal,
): Compiled<ObjectStoreRecord & { warehouse: WarehouseRecord }> {
  const store = compileStore(spec, secrets, (field, plain) => seal(field, plain, sealedBefore(published)));
  if (store.refusal !== undefined) return store;
  const { warehouse } = spec;
  const rules = rulesOf(warehouse);
  return {
    record: {
      ...store.record,
      warehouse: {
        prefix: warehouse?.prefix ?? '',
        fileFormat: warehouse?.fileFormat ?? 'jsonl',
        partitionBy: warehouse?.partitionBy ?? 'date',
        fieldMapping: rules.length === 0 ? null : rules,
      },
    },
  };
}

function rulesOf(warehouse: Spec['warehouse']): FieldMappingRule[] {
  return (warehouse?.fieldMapping ?? []).map(({ source, target, type, default: fallback }) => ({
    source,
    target,
    type,
    ...(fallback !== undefined && { default: fallback }),
  }));
}

function compileStore(
  { type, s3, r2, gcs, azureBlob, warehouse }: Spec,
  secrets: WarehouseInputs['secrets'],
  seal: (field: SealedRecordField, plain: string) => string,
): Compiled<ObjectStoreRecord> {
  const isPlatform = warehouse?.identity === 'platform';
  const incomplete = (needs: string) => refuse('InvalidCredentials', `type ${type} needs ${needs}, or spec.warehouse.identity platform`);
  const plain = (field: SealedRecordField): string => (secrets[field] ?? '').trim();
  const accessKey = (accessKeyId: string | undefined): AccessKeyRecord | null => {
    const value = plain('secretAccessKey');
    return accessKeyId === undefined || value === '' ? null : { accessKeyId, secretAccessKey: seal('secretAccessKey', value) };
  };
  // Part of the header that signs.
  if (!isPlatform && !isSendable((s3 ?? r2)?.accessKeyId ?? ''))
    return refuse('InvalidCredentials', `spec.${type}.accessKeyId ${sendableRule}`);
  if (s3 !== undefined) {
    const credentials = isPlatform ? null : accessKey(s3.accessKeyId);
    if (credentials === null && !isPlatform) return incomplete('accessKeyId and a value behind secretAccessKeySecretRef');
    return { record: { type: 's3', s3: { bucket: s3.bucket, region: s3.region, credentials } } };
  }
  if (r2 !== undefined) {
    const credentials = isPlatform ? null : accessKey(r2.accessKeyId);
    if (credentials === null && !isPlatform) return incomplete('accessKeyId and a value behind secretAccessKeySecretRef');
    return { record: { type: 'r2', r2: { bucket: r2.bucket, endpoint: r2.endpoint, credentials } } };
  }
  if (gcs !== undefined) {
    const key = plain('serviceAccountKey');
    const account = serviceAccountIn(key);
    if (!isPlatform && account === null) return incomplete('the JSON key of a service account behind serviceAccountKeySecretRef');
    const costly = isPlatform || account === null ? null : costlyKeyProblem(account.privateKey);
    if (costly !== null) return refuse('InvalidCredentials', `the private_key behind serviceAccountKeySecretRef ${costly}`);
    const credentials = isPlatform ? null : { serviceAccountKey: seal('serviceAccountKey', key) };
    return { record: { type: 'gcs', gcs: { bucket: gcs.bucket, projectId: gcs.projectId, credentials } } };
  }
  if (azureBlob !== undefined) {
    const key = plain('accountKey');
    if (!isPlatform && !/^[A-Za-z0-9+/]+={0,2}$/.test(key)) return incomplete('the Base64 text of a key behind accountKeySecretRef');
    const credentials = isPlatform ? null : { accountKey: seal('accountKey', key) };
    return {
      record: {
        type: 'azure_blob',
        azureBlob: { accountName: azureBlob.accountName, containerName: azureBlob.containerName, credentials },
      },
    };
  }
  return refuse('Incomplete', `spec has no settings for type ${type}`);
}

function sealedBefore(published: DestinationRecord | null): string[] {
  switch (published?.type) {
    case 's3':
      return [published.s3.credentials?.secretAccessKey ?? ''];
    case 'r2':
      return [published.r2.credentials?.secretAccessKey ?? ''];
    case 'gcs':
      return [published.gcs.credentials?.serviceAccountKey ?? ''];
    case 'azure_blob':
      return [published.azureBlob.credentials?.accountKey ?? ''];
    case 'http':
    case undefined:
      return [];
  }
}
