import type { Dispatcher } from 'undici';
import type { EgressRules } from '../../../core/egress-policy.ts';
import { type FieldMapping, readFieldMapping } from '../../../core/field-mapping.ts';
import { platformIdentityNotAllowed } from '../../../core/platform-identity.ts';
import { costlyKeyProblem } from '../../../core/private-keys.ts';
import type { AccessKeyRecord, ObjectStoreRecord, WarehouseDestinationRecord, WarehouseLayout } from '../../../core/records.ts';
import type { Keyring } from '../../../core/sealing.ts';
import { recordSealingContext, type SealedRecordField } from '../../../core/sealing-contexts.ts';
import { serviceAccountIn } from '../../../core/service-account.ts';
import { type StoreEndpoints, withHostsOf } from '../../../core/store-hosts.ts';
import type { Dispatchers } from '../http/dispatchers.ts';
import { SentSecrets } from '../http/sent-secrets.ts';
import { WarehouseRefusedError } from '../refusals.ts';
import type { ObjectWriter } from './object-writer.ts';
import { openObjectStore } from './open-object-store.ts';

/** Where batches are written to, and how. */
export interface WarehousePlan {
  store: ObjectWriter;
  layout: WarehouseLayout;
  mapping: FieldMapping | null;
  secrets: SentSecrets;
  /** Called for each attempt: unused pools are closed. */
  dispatcher: () => Dispatcher;
}

/** A record that must not be used, as one of an installation with other settings: every attempt fails with this. */
export interface RefusedWarehouse {
  refusal: WarehouseRefusedError;
}

export interface WarehouseSources {
  keyring: Keyring;
  dispatchers: Dispatchers;
  endpoints: StoreEndpoints;
  /** Permits the identity of this process for stores. */
  allowsPlatformIdentity: boolean;
}

/** Null when a secret does not open, or is a key that takes too long to sign with. */
export async function warehousePlan(
  destination: WarehouseDestinationRecord,
  { keyring, dispatchers, endpoints, egress, allowsPlatformIdentity }: WarehouseSources & { egress: EgressRules },
): Promise<WarehousePlan | RefusedWarehouse | null> {
  const { org, id, warehouse } = destination;
  const { prefix, fileFormat, partitionBy, fieldMapping } = warehouse;
  const identityProblem = identityRefusal(destination, allowsPlatformIdentity);
  if (identityProblem !== null) return { refusal: new WarehouseRefusedError(identityProblem) };
  const { mapping, problem } = fieldMapping === null ? { mapping: null } : readFieldMapping(fieldMapping);
  if (problem !== undefined)
    return { refusal: new WarehouseRefusedError(`fieldMapping[${problem.index}].${problem.field} ${problem.message}`) };
  const opened = openedStore(destination, (sealed, field) => keyring.open(sealed, recordSealingContext(org, 'destination', id, field)));
  if (opened === null) return null;
  return {
    store: await openObjectStore(opened, endpoints),
    layout: { prefix, fileFormat, partitionBy },
    mapping,
    secrets: storeSecrets(opened),
    dispatcher: dispatchers.forRules({ egress: withHostsOf(opened, egress, endpoints), tls: null, usesProxy: false }),
  };
}

/** The host of an r2 store is one that a user names: it would get what the identity signs. */
function identityRefusal(store: ObjectStoreRecord, allowsPlatformIdentity: boolean): string | null {
  switch (store.type) {
    case 'r2':
      return store.r2.credentials === null ? 'identity cannot be platform with type r2' : null;
    case 's3':
      return store.s3.credentials !== null || allowsPlatformIdentity ? null : platformIdentityNotAllowed;
    case 'gcs':
      return store.gcs.credentials !== null || allowsPlatformIdentity ? null : platformIdentityNotAllowed;
    case 'azure_blob':
      return store.azureBlob.credentials !== null || allowsPlatformIdentity ? null : platformIdentityNotAllowed;
    default:
      return store satisfies never;
  }
}

/** The credentials of a store that is opened. */
function storeSecrets(store: ObjectStoreRecord): SentSecrets {
  switch (store.type) {
    case 's3':
      return new SentSecrets(secretKey(store.s3.credentials));
    case 'r2':
      return new SentSecrets(secretKey(store.r2.credentials));
    case 'gcs':
      return new SentSecrets(Object.values(store.gcs.credentials ?? {}));
    case 'azure_blob':
      return new SentSecrets(Object.values(store.azureBlob.credentials ?? {}));
    default:
      return store satisfies never;
  }
}

function secretKey(key: AccessKeyRecord | null): string[] {
  return key === null ? [] : [key.secretAccessKey];
}

function openedStore(store: ObjectStoreRecord, open: (sealed: string, field: SealedRecordField) => string): ObjectStoreRecord | null {
  try {
    switch (store.type) {
      case 's3':
        return { type: 's3', s3: { ...store.s3, credentials: openedKey(store.s3.credentials) } };
      case 'r2':
        return { type: 'r2', r2: { ...store.r2, credentials: openedKey(store.r2.credentials) } };
      case 'gcs': {
        const { credentials } = store.gcs;
        const serviceAccountKey = credentials && { serviceAccountKey: open(credentials.serviceAccountKey, 'serviceAccountKey') };
        const account = serviceAccountKey && serviceAccountIn(serviceAccountKey.serviceAccountKey);
        if (account !== null && costlyKeyProblem(account.privateKey) !== null) return null;
        return { type: 'gcs', gcs: { ...store.gcs, credentials: serviceAccountKey } };
      }
      case 'azure_blob': {
        const { credentials } = store.azureBlob;
        return {
          type: 'azure_blob',
          azureBlob: { ...store.azureBlob, credentials: credentials && { accountKey: open(credentials.accountKey, 'accountKey') } },
        };
      }
      default:
        return store satisfies never;
    }
  } catch {
    return null;
  }

  function openedKey<T extends { secretAccessKey: string }>(key: T | null): T | null {
    return key && { ...key, secretAccessKey: open(key.secretAccessKey, 'secretAccessKey') };
  }
}
