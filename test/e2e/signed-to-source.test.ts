import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { newSigningKey } from '../../src/core/ed25519-keys.ts';
import { fetchProgrammed } from '../support/api-writes.ts';
import { eventually } from '../support/eventually.ts';
import { type Standalone, startStandalone } from '../support/program.ts';

/** A destination of Posthorn sends to a source of Posthorn. */

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
let standalone: Standalone;
beforeAll(async () => {
  standalone = await startStandalone({ environment: { POSTHORN_LOG_LEVEL: 'warn' } });
}, 90_000);
afterAll(() => standalone?.stop());

// biome-ignore lint/suspicious/noExplicitAny: answers of the API, of which each test reads some fields.
async function call(method: string, path: string, body?: object): Promise<any> {
  const headers = { 'x-api-key': standalone.key, 'content-type': 'application/json' };
  const response = await fetchProgrammed(`${standalone.url}${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) });
  const answer = await response.json();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${JSON.stringify(answer)}`);
  return answer;
}

interface Failure {
  reason: string;
  header: string | null;
}

async function send(number: number): Promise<void> {
  await call('POST', '/ingest/default/sender', { number });
}

/**
 * Sends events of this number until one is at the receiving source, because a change may be in force a moment after its response. Returns whether it has a
 * valid signature there.
 */
async function arrives(sourceId: string, number: number): Promise<boolean | null> {
  return await eventually(async () => {
    await send(number);
    const [isValid] = await eventually(`event ${number} at the receiving source`, 10_000, async () => {
      const { data } = await call('GET', `/api/events?sourceId=${sourceId}`);
      for (const { id } of data) {
        const event = await call('GET', `/api/events/${id}`);
        if (event.payload.number === number) return [event.signatureValid];
      }
      return undefined;
    });
    return isValid;
  }, 60_000);
}

/** Sends events of this number until one is refused for a failure like this. */
async function isRefused(sourceId: string, number: number, isExpected: (failure: Failure) => boolean): Promise<void> {
  await eventually(async () => {
    await send(number);
    await eventually(`event ${number} to be refused`, 10_000, async () => {
      const { data } = await call('GET', `/api/sources/${sourceId}/signature-failures`);
      return data.some(isExpected);
    });
  }, 60_000);
}

test('a source verifies what a destination signs with Ed25519, while both rotate their keys, and refuses the old key in the end', async () => {
  const [first, second] = [newSigningKey(), newSigningKey()];
  const sender = await call('POST', '/api/sources', { name: 'Sender' });
  const destination = await call('POST', '/api/destinations', {
    name: 'Receiver',
    url: `${standalone.url}/ingest/default/receiver`,
    signingSecret: first,
    signatureScheme: 'ed25519',
    retryPolicy: { maxRetries: 0 },
  });
  expect(destination.publicKey).toMatch(/^whpk_/);
  await call('POST', '/api/routes', { name: 'Relay', sourceId: sender.id, destinationIds: [destination.id] });
  const receiver = await call('POST', '/api/sources', {
    name: 'Receiver',
    provider: 'standard-webhooks',
    signingSecret: destination.publicKey,
  });
  expect(receiver).toMatchObject({ hasSigningSecret: true, rejectInvalidSignatures: true });
  expect(await arrives(receiver.id, 1)).toBe(true);

  const change = (body: object) => call('PATCH', `/api/destinations/${destination.id}`, body);
  const rotated = await change({ signingSecret: `${second} ${first}` });
  expect(await arrives(receiver.id, 2)).toBe(true);
  await expect(call('POST', `/api/sources/${receiver.id}/rotate-secret`, {})).rejects.toThrow(/400 .*verifies with a public key/);
  await call('POST', `/api/sources/${receiver.id}/rotate-secret`, { signingSecret: rotated.publicKey, gracePeriodSeconds: 3600 });
  await change({ signingSecret: first });
  expect(await arrives(receiver.id, 3)).toBe(true);
  await change({ signingSecret: second });
  expect(await arrives(receiver.id, 4)).toBe(true);

  await call('PATCH', `/api/sources/${receiver.id}`, { signingSecret: `${secret} ${destination.publicKey}` });
  await isRefused(receiver.id, 5, ({ reason, header }) => reason === 'no_secret_matches' && header === null);
  await change({ signingSecret: `${secret} ${second}`, signatureScheme: 'both' });
  expect(await arrives(receiver.id, 6)).toBe(true);
  await call('PATCH', `/api/sources/${receiver.id}`, { signingSecret: secret });
  await change({ signingSecret: second, signatureScheme: 'ed25519' });
  await isRefused(receiver.id, 7, ({ reason, header }) => reason === 'no_secret_matches' && header === 'webhook-signature');
}, 300_000);
