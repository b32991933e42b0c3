import { Keyring } from '../../src/core/sealing.ts';
import { recordSealingContext } from '../../src/core/sealing-contexts.ts';
import { s3Keys } from './object-stores.ts';
import { freePort } from './ports.ts';
import { type Program, startProgram } from './program.ts';

const key = Buffer.alloc(32, 1);

/** A process of the role delivery on one shard, which may reach loopback and writes to this S3 server. */
export async function startWarehouseWorker(redisUrl: string, storeUrl: string, environment: Record<string, string>): Promise<Program> {
  return startProgram(['delivery'], {
    POSTHORN_REDIS_URL: redisUrl,
    POSTHORN_SHARDS: '1',
    POSTHORN_ENCRYPTION_KEYS: `k1:${key.toString('base64')}`,
    POSTHORN_EGRESS_ALLOWED_CIDRS: '127.0.0.0/8',
    POSTHORN_WAREHOUSE_S3_ENDPOINT: storeUrl,
    POSTHORN_OPS_PORT: String(await freePort()),
    POSTHORN_HOST: '127.0.0.1',
    ...environment,
  });
}

/** What the record of such a destination of `org_a` says of the bucket, its key sealed as those workers open it. */
export function sealedBucket(bucket: string, destinationId: string) {
  const context = recordSealingContext('org_a', 'destination', destinationId, 'secretAccessKey');
  const secretAccessKey = new Keyring([{ id: 'k1', key }]).seal(s3Keys.secretAccessKey, context);
  return { bucket, region: 'us-east-1', credentials: { accessKeyId: s3Keys.accessKeyId, secretAccessKey } };
}
