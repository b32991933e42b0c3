import type { Dispatcher } from 'undici';
import { type FieldMapping, readFieldMapping } from '../../../core/field-mapping.ts';
import type { ObjectStoreRecord, WarehouseDestinationRecord, WarehouseLayout } from '../../../core/records.ts';
import type { Keyring } from '../../../core/sealing.ts';
import { recordSealingContext, type SealedRecordField } from '../../../core/sealing-contexts.ts';
import type { Dispatchers } from '../http/dispatchers.ts';
import type { EgressRules } from '../http/egress-policy.ts';
import type { ObjectStore } from './object-store.ts';
import { openObjectStore, type StoreEndpoints } from './open-object-store.ts';

/** Where batches are written to, and how. */
export interface WarehousePlan {
  store: ObjectStore;
  layout: WarehouseLayout;
  mapping: FieldMapping | null;
  /** Asked for each attempt: pools that were not used for long are closed. */
  dispatcher: () => Dispatcher;
}

export interface WarehouseSources {
  keyring: Keyring;
  dispatchers: Dispatchers;
  endpoints: StoreEndpoints;
}

/** Null when a secret does not open. Throws when a field mapping does not parse, which the controller refuses. */
export async function warehousePlan(
  destination: WarehouseDestinationRecord,
  { keyring, dispatchers, endpoints, egress }: WarehouseSources & { egress: EgressRules },
): Promise<WarehousePlan | null> {
  const { org, id, warehouse } = destination;
  const { prefix, fileFormat, partitionBy, fieldMapping } = warehouse;
  const opened = openedStore(destination, (sealed, field) => keyring.open(sealed, recordSealingContext(org, 'destination', id, field)));
  if (opened === null) return null;
  return {
    store: await openObjectStore(opened, endpoints),
    layout: { prefix, fileFormat, partitionBy },
    mapping: fieldMapping === null ? null : mappingOf(fieldMapping),
    dispatcher: dispatchers.forRules({ egress, tls: null, usesProxy: false }),
  };
}

function mappingOf(rules: Parameters<typeof readFieldMapping>[0]): FieldMapping {
  const { mapping, problem } = readFieldMapping(rules);
  if (problem !== undefined) throw new Error(`fieldMapping[${problem.index}].${problem.field} ${problem.message}`);
  return mapping;
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
