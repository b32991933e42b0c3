// Starts standalone, fills it with what the examples of its OpenAPI document make, and runs Schemathesis against it:
//   node hack/contract.ts SCHEMATHESIS [argument of `schemathesis run`]…
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describedOperations, members } from '../test/contract/described-operations.ts';
import { eventually } from '../test/support/eventually.ts';
import { freePort } from '../test/support/ports.ts';
import { startProgram } from '../test/support/program.ts';

const [schemathesis = 'schemathesis', ...wanted] = process.argv.slice(2);
const config = new URL('schemathesis.toml', import.meta.url).pathname;
const directory = mkdtempSync(join(tmpdir(), 'posthorn-contract-'));
const [port, receiverPort] = [await freePort(), await freePort()];
const url = `http://127.0.0.1:${port}`;
/** Token of the link that a thin event has brought. */
let token: string | undefined;
const receiver = createServer(async (request, response) => {
  token = /\/api\/payload\?token=([^"]+)"/.exec(await text(request))?.[1] ?? token;
  response.end('ok');
}).listen(receiverPort, '127.0.0.1');
const program = startProgram(['standalone'], {
  POSTHORN_PORT: String(port),
  POSTHORN_DATA_DIR: join(directory, 'data'),
  POSTHORN_LOG_LEVEL: 'warn',
  POSTHORN_ALLOW_INSECURE_ENDPOINTS: 'true',
  // Each operation is called with wrong credentials, too.
  POSTHORN_AUTH_FAILURES_PER_MINUTE: '1000000',
});

async function end(code: number): Promise<never> {
  await program.stop();
  receiver.close();
  rmSync(directory, { recursive: true, force: true });
  process.exit(code);
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void end(1));

try {
  const [, , key = ''] = await program.waitForOutput(/^posthorn ready (\S+) key (\S+)$/m, 60_000);
  const send = async (method: string, path: string, body?: unknown) => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const response = await fetch(url + path, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
    return { status: response.status, body: members(await response.json().catch(() => ({}))) };
  };
  const document = members((await send('GET', '/openapi.json')).body);
  const creates = describedOperations(document).filter(({ method, path }) => method === 'POST' && !path.includes('{'));
  // Twice: some examples refer to what others make.
  for (const { path, bodyExamples } of [...creates, ...creates]) for (const body of bodyExamples) await send('POST', `/api${path}`, body);
  const allowedMethods = ['POST', 'PUT', 'PATCH', 'GET', 'DELETE'];
  const source = await send('POST', '/api/sources', { name: 'Contract', allowedMethods });
  const destination = await send('POST', '/api/destinations', { name: 'Contract', url: `http://127.0.0.1:${receiverPort}` });
  await send('POST', '/api/routes', { name: 'Contract', sourceId: source.body['id'], destinationIds: [destination.body['id']] });
  const { eventId } = (await send('POST', '/ingest/default/contract', { order: 1 })).body;
  const deliveryId = await eventually('a delivery', 30_000, async () => {
    const { body } = await send('GET', '/api/deliveries?status=delivered');
    return Array.isArray(body['data']) ? members(body['data'][0])['id'] : undefined;
  });
  const changeForm = (payloadForm: string) => send('PATCH', `/api/destinations/${destination.body['id']}`, { payloadForm });
  await changeForm('thin');
  await send('POST', '/ingest/default/contract', { order: 2 });
  const payloadToken = await eventually('a thin event', 30_000, async () => token);
  await changeForm('full');
  const created = async (path: string, body: unknown) => String(members((await send('POST', path, body)).body['data'])['id']);
  const applicationId = members((await send('GET', '/api/webhook-applications/by-external-id/customer-17')).body['data'])['id'];
  const endpointId = await created('/api/webhook-endpoints', { applicationId, url: `http://127.0.0.1:${receiverPort}` });
  const subscriptionId = await created('/api/webhook-subscriptions', { endpointId, eventTypeId: 'order.paid' });
  const webhookEvent = await send('POST', '/api/send-event', { eventType: 'order.paid', payload: { id: 'o-17' } });
  const messageId = await eventually('a message', 30_000, async () => {
    const { body } = await send('GET', '/api/outbound-messages?status=success');
    return Array.isArray(body['data']) ? members(body['data'][0])['id'] : undefined;
  });
  const standard = ['--max-examples', '5', '--checks', 'all', '--seed', '1', '--no-color'];
  const run = ['--config-file', config, 'run', `${url}/openapi.json`, '--header', `Authorization: Bearer ${key}`, ...standard, ...wanted];
  const child = spawn(schemathesis, run, {
    cwd: directory,
    env: {
      ...process.env,
      POSTHORN_CONTRACT_EVENT: String(eventId),
      POSTHORN_CONTRACT_DELIVERY: String(deliveryId),
      POSTHORN_CONTRACT_APPLICATION: String(applicationId),
      POSTHORN_CONTRACT_ENDPOINT: endpointId,
      POSTHORN_CONTRACT_SUBSCRIPTION: subscriptionId,
      POSTHORN_CONTRACT_MESSAGE: String(messageId),
      POSTHORN_CONTRACT_TOKEN: payloadToken,
      POSTHORN_CONTRACT_WEBHOOK_EVENT: String(members(webhookEvent.body['data'])['eventId']),
    },
    stdio: 'inherit',
  });
  const [code] = await once(child, 'exit');
  if (code !== 0) console.error(program.output().slice(-4000));
  await end(code ?? 1);
} catch (error) {
  console.error(error, program.output().slice(-4000));
  await end(1);
}
