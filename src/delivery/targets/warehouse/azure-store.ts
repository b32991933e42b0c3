import { BlobServiceClient, newPipeline, StorageSharedKeyCredential } from '@azure/storage-blob';
import type { ObjectWriter } from './object-writer.ts';
import type { Transport } from './transport.ts';

type HttpClient = NonNullable<NonNullable<Parameters<typeof newPipeline>[1]>['httpClient']>;
type Credential = Parameters<typeof newPipeline>[0];

/** `endpoint`: a replacement for Azure's; accounts are then in the path. */
export async function openAzureStore(
  { accountName, containerName, credentials }: { accountName: string; containerName: string; credentials: { accountKey: string } | null },
  endpoint: string | undefined,
): Promise<ObjectWriter> {
  const credential: Credential =
    credentials === null ? await platformCredential() : new StorageSharedKeyCredential(accountName, credentials.accountKey);
  const url = endpoint === undefined ? `https://${accountName}.blob.core.windows.net` : `${endpoint.replace(/\/$/, '')}/${accountName}`;
  return {
    put: async ({ key, body, contentType }, transport) => {
      const pipeline = newPipeline(credential, { retryOptions: { maxTries: 1 }, httpClient: clientOf(transport) });
      const blob = new BlobServiceClient(url, pipeline).getContainerClient(containerName).getBlockBlobClient(key);
      await blob.upload(body, body.length, { blobHTTPHeaders: { blobContentType: contentType }, abortSignal: transport.signal });
    },
  };
}

async function platformCredential(): Promise<Credential> {
  const { DefaultAzureCredential } = await import('@azure/identity');
  return new DefaultAzureCredential();
}

function clientOf(transport: Transport): HttpClient {
  return {
    sendRequest: async (request) => {
      const body: unknown = request.body;
      const answer = await transport.send({
        url: request.url,
        method: request.method,
        headers: request.headers.rawHeaders(),
        body: Buffer.isBuffer(body) || typeof body === 'string' ? body : null,
      });
      const headers = request.headers.clone();
      for (const name of headers.headerNames()) headers.remove(name);
      for (const [name, value] of Object.entries(answer.headers)) headers.set(name, value);
      return { request, status: answer.status, headers, bodyAsText: answer.body.toString('utf8') };
    },
  };
}
