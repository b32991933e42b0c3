import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { deliverySuite } from '../../../../test/support/delivery-suite.ts';
import { eventually } from '../../../../test/support/eventually.ts';
import { newEvent } from '../../../../test/support/new-event.ts';
import { type StoreServer, s3Keys, startS3Server } from '../../../../test/support/object-stores.ts';
import { routeRecord, warehouseRecord } from '../../../../test/support/records.ts';
import type { ObjectStoreRecord, WarehouseRecord } from '../../../core/records.ts';

const retryPolicy = { maxRetries: 1, initialDelayMs: 100, maxDelayMs: 100, backoffMultiplier: 1 };
/** A possible identity of a pod: the environment has the keys of the store. */
const identity = { AWS_ACCESS_KEY_ID: s3Keys.accessKeyId, AWS_SECRET_ACCESS_KEY: s3Keys.secretAccessKey };

let store: StoreServer;
const suite = deliverySuite();

beforeAll(async () => {
  store = await startS3Server();
  Object.assign(process.env, identity);
});
afterAll(async () => {
  for (const name of Object.keys(identity)) delete process.env[name];
  await store.stop();
});
beforeEach(() => suite.registry.put('route', routeRecord()));

async function send(record: ObjectStoreRecord, warehouse: Partial<WarehouseRecord>, allowsPlatformIdentity: boolean): Promise<string> {
  suite.registry.put('destination', warehouseRecord(record, warehouse, { retryPolicy }));
  const endpoints = { s3: store.url, gcs: store.url, azure: store.url };
  suite.worker({ warehouse: { batchAgeMs: 50, endpoints, allowsPlatformIdentity } });
  const event = newEvent();
  await suite.acceptor.accept(event);
  return event.targets[0]?.messageId ?? '';
}

const s3 = { type: 's3', s3: { bucket: 'events', region: 'us-east-1', credentials: null } } as const;
const r2 = { type: 'r2', r2: { bucket: 'events', endpoint: 'https://127.0.0.1:1', credentials: null } } as const;
const gcs = { type: 'gcs', gcs: { bucket: 'events', projectId: 'test', credentials: null } } as const;
const azure = { type: 'azure_blob', azureBlob: { accountName: 'acme', containerName: 'events', credentials: null } } as const;
const notLent = /does not allow the identity of the delivery pods \(POSTHORN_WAREHOUSE_PLATFORM_IDENTITY\)/;
const costly = [{ source: '$..*..*', target: 'a', type: 'json' as const }];

test.each([
  ['s3 with the identity of the pods', s3, {}, false, notLent],
  ['gcs with the identity of the pods', gcs, {}, false, notLent],
  ['azure_blob with the identity of the pods', azure, {}, false, notLent],
  ['r2 with the identity of the pods, even where it is lent', r2, {}, true, /identity cannot be platform with type r2/],
  ['a field mapping that is refused today', s3, { fieldMapping: costly }, true, /^fieldMapping\[0\]\.source .*descendant/],
])(
  'a record of an installation with other settings, %s, is not used: its messages say why and end in the dead letters',
  async (_, record, warehouse, isLent, why) => {
    const id = await send(record, warehouse, isLent);
    await eventually(async () => expect(await suite.reader.delivery('org_a', id)).toMatchObject({ status: 'dlq' }));
    expect(await suite.reader.delivery('org_a', id)).toMatchObject({
      attempts: 2,
      deadLetterReason: 'max_retries_exceeded',
      lastErrorType: 'blocked',
      lastErrorMessage: expect.stringMatching(why),
    });
    expect((await store.objects()).size).toBe(0);
  },
);

test('where the installation lends it, the identity of the pods is used', async () => {
  const id = await send(s3, {}, true);
  await eventually(async () => expect(await suite.reader.delivery('org_a', id)).toMatchObject({ status: 'delivered' }));
  expect((await store.objects()).size).toBe(1);
});
