import { Storage, type StorageOptions } from '@google-cloud/storage';
import { type Credentials, JWT } from 'google-auth-library';
import { withoutByteOrderMark } from '../../../core/payload-text.ts';
import { parsePlainJson } from '../../../core/plain-json.ts';
import type { ObjectWriter } from './object-writer.ts';
import type { Transport } from './transport.ts';

/** All that an upload needs. */
const scopes = 'https://www.googleapis.com/auth/devstorage.read_write';

/** `endpoint`: a replacement for Google's; requests carry no credentials. */
export function openGcsStore(
  { bucket, projectId, credentials }: { bucket: string; projectId: string; credentials: { serviceAccountKey: string } | null },
  endpoint: string | undefined,
): ObjectWriter {
  const common: StorageOptions = {
    projectId,
    retryOptions: { autoRetry: false, maxRetries: 0 },
    ...(endpoint !== undefined && { apiEndpoint: endpoint }),
  };
  const account = credentials === null ? null : accountOf(credentials.serviceAccountKey);
  // One client keeps the tokens of the platform, which come from its metadata server.
  const platform = account === null ? new Storage(common).authClient : null;
  let token: Credentials | null = null;
  return {
    put: async ({ key, body, contentType }, transport) => {
      const own = account === null ? null : new JWT({ ...account, scopes, transporterOptions: { fetchImplementation: transport.fetch } });
      if (own !== null && token !== null) own.setCredentials(token);
      const client = own ?? platform;
      const storage = new Storage({ ...common, ...(client !== null && { authClient: client }) });
      storage.interceptors.push({ request: (options) => withFetch(options, transport) });
      try {
        await storage.bucket(bucket).file(key).save(body, { resumable: true, validation: false, contentType });
        if (own !== null) token = own.credentials;
      } catch (error) {
        // It may be the token that is refused.
        token = null;
        throw error;
      }
    },
  };
}

type RequestOptions = Parameters<NonNullable<Storage['interceptors'][number]['request']>>[0];
type Intercepted = ReturnType<NonNullable<Storage['interceptors'][number]['request']>>;

/** The types of interceptors omit request properties of uploads. */
function withFetch(options: RequestOptions, transport: Transport): Intercepted {
  return Object.assign(options, { fetchImplementation: transport.fetch }) as unknown as Intercepted;
}

function accountOf(key: string): { email: string; key: string } {
  const { client_email: email, private_key: privateKey }: Record<string, unknown> = parsePlainJson(withoutByteOrderMark(key));
  return { email: String(email), key: String(privateKey) };
}
