import { PutObjectCommand, S3Client, type S3ClientConfig } from '@aws-sdk/client-s3';
import type { AccessKeyRecord } from '../../../core/records.ts';
import type { ObjectWriter } from './object-writer.ts';
import type { Transport } from './transport.ts';

type RequestHandler = Extract<S3ClientConfig['requestHandler'], { handle: unknown }>;
type Sent = Parameters<RequestHandler['handle']>[0];

/** `endpoint`: a server other than that of the region; buckets are then in the path. */
export function openS3Store({
  bucket,
  region,
  endpoint,
  credentials,
}: {
  bucket: string;
  region: string;
  endpoint?: string;
  credentials: AccessKeyRecord | null;
}): ObjectWriter {
  const common = {
    region,
    maxAttempts: 1,
    // Not every S3 server supports the newer checksums; the signature covers the body.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    ...(endpoint !== undefined && { endpoint, forcePathStyle: true }),
  } satisfies S3ClientConfig;
  // One client caches the credentials of the platform, and refreshes them before they expire.
  const platform = credentials === null ? new S3Client(common) : null;
  const identity: S3ClientConfig['credentials'] = platform === null ? (credentials ?? undefined) : () => platform.config.credentials();
  return {
    put: async ({ key, body, contentType }, transport) => {
      const client = new S3Client({ ...common, ...(identity && { credentials: identity }), requestHandler: handlerOf(transport) });
      try {
        const command = new PutObjectCommand({ Bucket: bucket, Key: key, Body: body, ContentType: contentType });
        await client.send(command, { abortSignal: transport.signal });
      } finally {
        client.destroy();
      }
    },
  };
}

function handlerOf(transport: Transport): RequestHandler {
  return {
    handle: async ({ protocol, hostname, port, path, query, method, headers, body }: Sent) => {
      const origin = `${protocol}//${hostname}${port === undefined ? '' : `:${port}`}`;
      const url = `${origin}${path}${queryString({ ...query })}`;
      const answer = await transport.send({ url, method, headers, body: Buffer.isBuffer(body) || typeof body === 'string' ? body : null });
      return { response: { statusCode: answer.status, headers: answer.headers, body: answer.body } };
    },
  };
}

function queryString(query: Record<string, string | string[] | null>): string {
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    [value ?? ''].flat().map((each) => `${encodeURIComponent(name)}=${encodeURIComponent(each)}`),
  );
  return pairs.length === 0 ? '' : `?${pairs.join('&')}`;
}
