import { recordSealingContext } from '../../src/core/sealing-contexts.ts';
import { testKeyring } from './controllers.ts';
import { startDeliveryProgram } from './delivery-program.ts';
import { s3Keys } from './object-stores.ts';
import type { Program } from './program.ts';

/** A process of the role delivery on one shard, which may reach loopback and writes to this S3 server. */
export async function startWarehouseWorker(redisUrl: string, storeUrl: string, environment: Record<string, string>): Promise<Program> {
  return await startDeliveryProgram(redisUrl, {
    POSTHORN_SHARDS: '1',
    POSTHORN_EGRESS_ALLOWED_CIDRS: '127.0.0.0/8',
    POSTHORN_WAREHOUSE_S3_ENDPOINT: storeUrl,
    ...environment,
  });
}

/** The record of such a destination of `org_a` about the bucket, its key sealed as those workers open it. */
export function sealedBucket(bucket: string, destinationId: string) {
  const context = recordSealingContext('org_a', 'destination', destinationId, 'secretAccessKey');
  const secretAccessKey = testKeyring.seal(s3Keys.secretAccessKey, context);
  return { bucket, region: 'us-east-1', credentials: { accessKeyId: s3Keys.accessKeyId, secretAccessKey } };
}
