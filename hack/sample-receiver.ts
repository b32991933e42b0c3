// Prints each delivery in one line and answers 200: node hack/sample-receiver.ts [--port 9400] [--secret whsec_…]
// With a secret, a delivery whose Standard Webhooks signature is wrong is answered with 401.
import { createServer, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { parseArgs } from 'node:util';
import { Webhook } from 'standardwebhooks';

const { values } = parseArgs({ options: { port: { type: 'string', default: '9400' }, secret: { type: 'string' } } });
const webhook = values.secret === undefined ? null : new Webhook(values.secret);
const shownBodyCharacters = 100;

function header(request: IncomingMessage, name: string): string {
  const value = request.headers[name];
  return typeof value === 'string' ? value : '-';
}

function signature(request: IncomingMessage, body: string): 'unchecked' | 'valid' | 'invalid' {
  if (webhook === null) return 'unchecked';
  const names = ['webhook-id', 'webhook-timestamp', 'webhook-signature'];
  try {
    webhook.verify(body, Object.fromEntries(names.map((name) => [name, header(request, name)])));
    return 'valid';
  } catch {
    return 'invalid';
  }
}

const server = createServer(async (request, response) => {
  try {
    const body = await text(request);
    const verdict = signature(request, body);
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
