import type { ObjectStoreRecord } from '../../../core/records.ts';
import type { StoreEndpoints } from '../../../core/store-hosts.ts';
import type { ObjectWriter } from './object-writer.ts';

/** Opens the store of a record whose credentials are in clear. The SDKs are loaded when the first store that needs them is opened. */
export async function openObjectStore(store: ObjectStoreRecord, endpoints: StoreEndpoints): Promise<ObjectWriter> {
  switch (store.type) {
    case 's3': {
      const { openS3Store } = await import('./s3-store.ts');
      return openS3Store({ ...store.s3, endpoint: endpoints.s3 });
    }
    case 'r2': {
      const { openS3Store } = await import('./s3-store.ts');
      return openS3Store({ ...store.r2, region: 'auto' });
    }
    case 'gcs': {
      const { openGcsStore } = await import('./gcs-store.ts');
      return openGcsStore(store.gcs, endpoints.gcs);
    }
    case 'azure_blob': {
      const { openAzureStore } = await import('./azure-store.ts');
      return openAzureStore(store.azureBlob, endpoints.azure);
    }
    default:
      return store satisfies never;
  }
}
