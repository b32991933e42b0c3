import { createHash, createHmac } from 'node:crypto';
import type { CloudRequest } from './cloud-hosts.ts';

const hmac = (key: string | Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest();
const sha256 = (content: string | Buffer): string => createHash('sha256').update(content).digest('hex');

/** The Authorization that a request to S3 should have, of the headers that it lists as signed (AWS Signature Version 4, header-based). */
export function awsAuthorization(
  { method, path, headers, body }: CloudRequest,
  { accessKeyId, secretAccessKey, region }: { accessKeyId: string; secretAccessKey: string; region: string },
): string {
  const signedHeaders = /SignedHeaders=([^,]+)/.exec(headers.authorization ?? '')?.[1] ?? 'host';
  const time = String(headers['x-amz-date']);
  const [uri = '', query = ''] = path.split('?');
  const lines = signedHeaders.split(';').map((name) => `${name}:${String(headers[name]).trim()}\n`);
  const canonical = [method, uri, query.split('&').sort().join('&'), lines.join(''), signedHeaders, sha256(body)].join('\n');
  const scope = `${time.slice(0, 8)}/${region}/s3/aws4_request`;
  const key = [time.slice(0, 8), region, 's3', 'aws4_request'].reduce<string | Buffer>(hmac, `AWS4${secretAccessKey}`);
  const signature = hmac(key, ['AWS4-HMAC-SHA256', time, scope, sha256(canonical)].join('\n')).toString('hex');
  return `AWS4-HMAC-SHA256 Credential=${accessKeyId}/${scope}, SignedHeaders=${signedHeaders}, Signature=${signature}`;
}

/** The Authorization that a request to Azure Blob Storage without a query should have (Authorize with Shared Key, 2009-09-19 and later). */
export function azureAuthorization({ method, path, headers }: CloudRequest, account: string, accountKey: string): string {
  const standard = [
    'content-encoding',
    'content-language',
    'content-length',
    'content-md5',
    'content-type',
    'date',
    'if-modified-since',
    'if-match',
    'if-none-match',
    'if-unmodified-since',
    'range',
  ].map((name) => headers[name] ?? '');
  const own = Object.keys(headers).filter((name) => name.startsWith('x-ms-'));
  const lines = own.sort().map((name) => `${name}:${headers[name]}`);
  const text = [method, ...standard, ...lines, `/${account}${path}`].join('\n');
  return `SharedKey ${account}:${hmac(Buffer.from(accountKey, 'base64'), text).toString('base64')}`;
}
