import { Storage, type StorageOptions } from '@google-cloud/storage';
import type { ObjectStore } from './object-store.ts';
import type { Transport } from './transport.ts';

/** `endpoint`: of a server that stands for Google's; it is asked without credentials. */
export function openGcsStore(
  { bucket, projectId, credentials }: { bucket: string; projectId: string; credentials: { serviceAccountKey: string } | null },
  endpoint: string | undefined,
): ObjectStore {
  const common: StorageOptions = {
    projectId,
    retryOptions: { autoRetry: false, maxRetries: 0 },
    ...(endpoint !== undefined && { apiEndpoint: endpoint }),
    ...(credentials !== null && { credentials: accountOf(credentials.serviceAccountKey) }),
  };
  // One client keeps the tokens of the platform, which come from its metadata server.
  const platform = credentials === null ? new Storage(common).authClient : null;
  let token: Parameters<Awaited<ReturnType<Storage['authClient']['getClient']>>['setCredentials']>[0] | null = null;
  return {
    put: async ({ key, body, contentType }, transport) => {
      const storage = new Storage({ ...common, ...(platform !== null && { authClient: platform }) });
      storage.interceptors.push({ request: (options) => withFetch(options, transport) });
      const client = platform === null ? await storage.authClient.getClient() : null;
      if (client !== null) {
        client.transporter.defaults.fetchImplementation = transport.fetch;
        if (token !== null) client.setCredentials(token);
      }
      await storage.bucket(bucket).file(key).save(body, { resumable: true, validation: false, contentType });
      if (client !== null) token = client.credentials;
    },
  };
}

type RequestOptions = Parameters<NonNullable<Storage['interceptors'][number]['request']>>[0];
type Intercepted = ReturnType<NonNullable<Storage['interceptors'][number]['request']>>;

/** The types of interceptors leave out what the requests of uploads know. */
function withFetch(options: RequestOptions, transport: Transport): Intercepted {
  return Object.assign(options, { fetchImplementation: transport.fetch }) as unknown as Intercepted;
}

function accountOf(key: string): { client_email: string; private_key: string } {
  const { client_email: email, private_key: privateKey }: Record<string, unknown> = JSON.parse(key);
  return { client_email: String(email), private_key: String(privateKey) };
}
