// Prints each delivery in one line and answers 200: node hack/sample-receiver.ts [--port 9400] [--secret whsec_… | --secret whpk_…]
// With a secret or a public key, a delivery whose Standard Webhooks signature is wrong is answered with 401.
import { createHmac, createPublicKey, verify } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { parseArgs } from 'node:util';

const { values } = parseArgs({ options: { port: { type: 'string', default: '9400' }, secret: { type: 'string' } } });
const key = values.secret === undefined ? null : Buffer.from(values.secret.replace(/^wh(?:sec|pk)_/, ''), 'base64');
const publicKey =
  key === null || values.secret?.startsWith('whpk_') !== true
    ? null
    : createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: key.toString('base64url') }, format: 'jwk' });
const oldestSeconds = 300;
const shownBodyCharacters = 100;

function header(request: IncomingMessage, name: string): string {
  const value = request.headers[name];
  return typeof value === 'string' ? value : '-';
}

/** What is signed are the bytes of the body, whatever they mean. */
function signature(request: IncomingMessage, body: Buffer): 'unchecked' | 'valid' | 'invalid' {
  if (key === null) return 'unchecked';
  const timestamp = header(request, 'webhook-timestamp');
  const content = Buffer.concat([Buffer.from(`${header(request, 'webhook-id')}.${timestamp}.`), body]);
  const signatures = header(request, 'webhook-signature').split(' ');
  const isSigned =
    publicKey === null
      ? signatures.includes(`v1,${createHmac('sha256', key).update(content).digest('base64')}`)
      : signatures.some((each) => each.startsWith('v1a,') && verify(null, content, publicKey, Buffer.from(each.slice(4), 'base64')));
  return isSigned && Math.abs(Date.now() / 1000 - Number(timestamp)) <= oldestSeconds ? 'valid' : 'invalid';
}

const server = createServer(async (request, response) => {
  try {
    const bytes = await buffer(request);
    const verdict = signature(request, bytes);
    const body = bytes.toString();
    const shown = body.length > shownBodyCharacters ? `${body.slice(0, shownBodyCharacters)}…` : body;
    console.log(
      `received ${request.method} ${request.url} webhook-id=${header(request, 'webhook-id')} signature=${verdict} ${shown.replaceAll(/\s+/g, ' ')}`,
    );
    response.writeHead(verdict === 'invalid' ? 401 : 200).end();
  } catch (error) {
    console.error(`sample-receiver: a request broke off: ${error instanceof Error ? error.message : error}`);
    response.destroy();
  }
});

server.once('error', (error) => {
  console.error(`sample-receiver: cannot listen on port ${values.port}: ${error.message}`);
  process.exit(1);
});
server.listen(Number(values.port), '127.0.0.1', () => console.log(`sample-receiver listening on http://127.0.0.1:${values.port}`));

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    server.closeAllConnections();
    server.close();
  });
}
