import type { IncomingMessage, ServerResponse } from 'node:http';
import express from 'express';
import { PosthornError } from '../../core/errors.ts';

const noBytes = Buffer.alloc(0);

/**
 * Reads the body of a request, decompressed if necessary. Rejects with the errors of express' body reader, of which those of
 * larger bodies come once the client has sent them.
 */
export async function readBody(request: UnreadRequest, response: ServerResponse, limit: number): Promise<Buffer> {
  if (isPlain(request, limit)) return await readPlain(request);
  const readAny = express.raw({ type: () => true, limit });
  await new Promise<void>((resolve, reject) => {
    readAny(request, response, (error?: unknown) => (error === undefined ? resolve() : reject(error)));
  });
  return Buffer.isBuffer(request.body) ? request.body : noBytes;
}

/** How many bytes of a body `readBody` keeps at most. */
export function bytesToRead(request: IncomingMessage, limit: number): number {
  const { 'content-length': length, 'transfer-encoding': coding, 'content-encoding': encoding } = request.headers;
  if (length === undefined && coding === undefined) return 0;
  if (isPlain(request, limit)) return Number(length);
  // A body whose Content-Length is too large is refused unread.
  return encoding === undefined && coding === undefined ? 0 : limit;
}

/** `body`: where express' body reader leaves what it has read. */
type UnreadRequest = IncomingMessage & { body?: unknown };

/** Sent as it is, and known not to be too large: most are. */
function isPlain({ headers }: IncomingMessage, limit: number): boolean {
  const { 'content-length': length, 'content-encoding': encoding } = headers;
  return length !== undefined && encoding === undefined && headers['transfer-encoding'] === undefined && Number(length) <= limit;
}

function readPlain(request: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    if (request.destroyed) return reject(hungUp());
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => void chunks.push(chunk));
    request.on('end', () => {
      const [only = noBytes] = chunks;
      resolve(chunks.length > 1 ? Buffer.concat(chunks) : only);
    });
    // After the end, too, it closes: an error made then for nothing, with its stack, would be a twelfth of a small request.
    const broken = (): void => {
      if (!request.readableEnded) reject(hungUp());
    };
    request.on('error', broken);
    request.on('close', broken);
  });
}

function hungUp(): PosthornError {
  return new PosthornError('BAD_REQUEST', 'The request cannot be read (request.aborted).');
}
