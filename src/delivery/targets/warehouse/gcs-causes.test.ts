import { once } from 'node:events';
import { createServer, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { expect, test } from '@jest/globals';
import { Agent } from 'undici';
import { systemClock } from '../../../runtime/system-clock.ts';
import { SentSecrets } from '../http/sent-secrets.ts';
import { openGcsStore } from './gcs-store.ts';
import { upload } from './upload.ts';

const json = (status: number, body: object): RequestListener => {
  return (_, response) => response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
};

const text = 'x'.repeat(33 * 1024);
const tooLarge = { type: 'error', error: expect.objectContaining({ message: 'the connection to the store failed' }) };
/** Sends until the connection ends. */
function endless(response: ServerResponse): void {
  response.write(text, (error) => {
    if (error == null) setImmediate(endless, response);
  });
}

test.each<[string, RequestListener, object]>([
  [
    'forbids it',
    json(403, { error: { code: 403, errors: [{ reason: 'forbidden' }] } }),
    { type: 'response', status: 403, code: 'forbidden' },
  ],
  ['names a state', json(404, { error: { code: 404, status: 'NOT_FOUND' } }), { type: 'response', status: 404, code: 'NOT_FOUND' }],
  ['gives no token', json(400, { error: 'invalid_grant' }), { type: 'response', status: 400, code: 'invalid_grant' }],
  [
    'opens no upload',
    json(200, {}),
    { type: 'error', error: expect.objectContaining({ message: expect.stringMatching(/^the upload failed: .+/) }) },
  ],
  ['answers with more than 32 KiB', json(403, { error: { code: 403, text } }), tooLarge],
  [
    'answers with little that decompresses to more than 32 KiB',
    (_, response) => response.writeHead(403, { 'content-type': 'application/json', 'content-encoding': 'gzip' }).end(gzipSync(`"${text}"`)),
    tooLarge,
  ],
  ['answers without an end', (_, response) => endless(response.writeHead(403, { 'content-type': 'application/json' })), tooLarge],
])('an upload to a store of Google that %s says why', async (_, listener, expected) => {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const dispatcher = new Agent();
  try {
    const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const store = openGcsStore({ bucket: 'events', projectId: 'p', credentials: null }, endpoint);
    const objects = [{ key: 'a', body: Buffer.from('x'), contentType: 'text/plain' }];
    const context = { dispatcher, secrets: new SentSecrets([]), clock: systemClock, signal: new AbortController().signal };
    expect(await upload(store, objects, context)).toMatchObject(expected);
  } finally {
    await dispatcher.destroy();
    server.closeAllConnections();
    server.close();
  }
});
