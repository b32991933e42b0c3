import type { z } from 'zod';
import { count, flag, storeEndpoint } from './config-values.ts';

const servedBy: { roles: ('delivery' | 'standalone')[] } = { roles: ['delivery', 'standalone'] };

const readBy: { roles: ('controller' | 'delivery' | 'standalone')[] } = { roles: ['controller', 'delivery', 'standalone'] };

/** Settings of object stores and of the files in them. */
export const warehouseEnvironment = {
  POSTHORN_WAREHOUSE_BATCH_SECONDS: count(1, 3600, 60)
    .describe('How long the oldest record of a batch for a warehouse waits for others; a batch of 1000 records or 5 MiB goes at once.')
    .meta(servedBy),
  POSTHORN_ARCHIVE_BATCH_SECONDS: count(1, 3600, 600)
    .describe('How long the oldest message of an archive waits for others; 1000 messages or about 4 MiB are written at once.')
    .meta(servedBy),
  POSTHORN_WAREHOUSE_PLATFORM_IDENTITY: flag
    .prefault('false')
    .describe(
      '`true`: warehouse destinations of every organization may have `identity: platform`, and with it write wherever the identity of the delivery pods may. The same for all roles.',
    )
    .meta({ roles: ['controller', 'api', 'delivery', 'standalone'] }),
  POSTHORN_WAREHOUSE_S3_ENDPOINT: storeEndpoint
    .describe(
      'Server that speaks S3 and takes the files of all destinations of type s3, instead of AWS: `http(s)://host:port`, buckets in the path.',
    )
    .meta(readBy),
  POSTHORN_WAREHOUSE_GCS_ENDPOINT: storeEndpoint
    .describe('The same for destinations of type gcs: an emulator of Google Cloud Storage, which is used without credentials.')
    .meta(readBy),
  POSTHORN_WAREHOUSE_AZURE_ENDPOINT: storeEndpoint
    .describe('The same for destinations of type azure_blob, such as Azurite: accounts in the path.')
    .meta(readBy),
};

type WarehouseEnvironment = z.output<z.ZodObject<typeof warehouseEnvironment>>;

export interface WarehouseConfig {
  batchAgeMs: number;
  archiveAgeMs: number;
  /** Destinations may have the identity of the delivery pods. */
  allowsPlatformIdentity: boolean;
  endpoints: { s3?: string | undefined; gcs?: string | undefined; azure?: string | undefined };
}

export function warehouseConfig(values: WarehouseEnvironment): WarehouseConfig {
  return {
    batchAgeMs: values.POSTHORN_WAREHOUSE_BATCH_SECONDS * 1000,
    archiveAgeMs: values.POSTHORN_ARCHIVE_BATCH_SECONDS * 1000,
    allowsPlatformIdentity: values.POSTHORN_WAREHOUSE_PLATFORM_IDENTITY,
    endpoints: {
      s3: values.POSTHORN_WAREHOUSE_S3_ENDPOINT,
      gcs: values.POSTHORN_WAREHOUSE_GCS_ENDPOINT,
      azure: values.POSTHORN_WAREHOUSE_AZURE_ENDPOINT,
    },
  };
}
