import { type EgressRules, matchesHost } from './egress-policy.ts';
import type { ObjectStoreRecord } from './records.ts';

/** Servers that replace the cloud for all stores of a type: `http(s)://host:port`. */
export interface StoreEndpoints {
  s3?: string | undefined;
  gcs?: string | undefined;
  azure?: string | undefined;
}

/** The host by which a list names a store, and those that are reached for it. */
function storeHosts(store: ObjectStoreRecord, endpoints: StoreEndpoints): string[] {
  const replacing = (endpoint: string | undefined): string[] => (endpoint === undefined ? [] : [new URL(endpoint).hostname]);
  switch (store.type) {
    case 's3': {
      const named = `s3.${store.s3.region}.amazonaws.com`;
      return [named, `${store.s3.bucket}.${named}`, ...replacing(endpoints.s3)];
    }
    case 'r2':
      return [new URL(store.r2.endpoint).hostname];
    case 'gcs':
      return ['storage.googleapis.com', 'oauth2.googleapis.com', ...replacing(endpoints.gcs)];
    case 'azure_blob':
      return [`${store.azureBlob.accountName}.blob.core.windows.net`, ...replacing(endpoints.azure)];
    default:
      return store satisfies never;
  }
}

/** The servers that take the files of a store. */
export function storeUrls(store: ObjectStoreRecord, endpoints: StoreEndpoints): string[] {
  const { s3, gcs, azure } = endpoints;
  const replacing = { s3, gcs, azure_blob: azure, r2: store.type === 'r2' ? store.r2.endpoint : undefined }[store.type];
  return replacing === undefined ? storeHosts(store, {}).map((host) => `https://${host}`) : [replacing];
}

/**
 * With a listed store the hosts behind it may be reached: bucket names in front, the tokens of a service account, the server that the
 * installation has instead. The list names the store as cluster policies do.
 */
export function withHostsOf(store: ObjectStoreRecord, egress: EgressRules, endpoints: StoreEndpoints): EgressRules {
  const { onlyHosts } = egress;
  const [named, ...behind] = storeHosts(store, endpoints);
  if (onlyHosts === undefined || named === undefined || !matchesHost(named, onlyHosts)) return egress;
  return { ...egress, onlyHosts: [...onlyHosts, ...behind] };
}
