import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { requestMemoryLimits } from '../../src/facade/http/request-memory.ts';
import { eventually } from '../support/eventually.ts';
import { lenientClock } from '../support/lenient-clock.ts';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';

const importBytes = 8 * 1024 * 1024;
const fitting = requestMemoryLimits.ofCredential / importBytes;
const others = ['globex', 'initech', 'umbrella', 'hooli'];
let world: FacadeWorld;
beforeAll(async () => {
  // Waits for memory last longer than the test does.
  world = await startFacadeWorld({ clock: lenientClock });
  for (const slug of others) await world.addOrganization(slug);
});
afterAll(() => world?.stop());

const sockets: Socket[] = [];
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});

/** A client that sends all of the body of an import but its last byte. */
function unfinishedImport(key: string): Socket {
  const { hostname: host, port } = new URL(world.baseUrl);
  const socket = connect(Number(port), host).on('error', () => undefined);
  const head = `POST /api/routes/import HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: ${importBytes}\r\n\r\n`;
  socket.write(Buffer.concat([Buffer.from(head), Buffer.alloc(importBytes - 1, ' ')]));
  sockets.push(socket);
  return socket;
}
/** An import that is refused once all of it is read. */
const readable = { routes: [], padding: 'x'.repeat(200_000) };
/** Those whose bodies the process has read; what the system keeps of the others is less than their rest. */
const readOf = (clients: readonly Socket[]): Socket[] => clients.filter(({ writableLength }) => writableLength === 0);

test('only as many bodies that do not end are read as an organization has room for, and others are served beside them', async () => {
  const clients = Array.from({ length: 3 * fitting }, () => unfinishedImport(world.admin));
  await eventually(() => expect(readOf(clients)).toHaveLength(fitting));
  await sleep(500);
  expect(readOf(clients)).toHaveLength(fitting);
  const body = { name: 'Orders', description: 'x'.repeat(400), slug: 'orders' };
  expect((await world.request('GET', '/api/sources')).status).toBe(200);
  expect((await world.request('POST', '/api/sources', { body })).status).toBe(201);
  const key = await world.addKey('globex');
  expect((await world.request('POST', '/api/routes/import', { key, body: readable })).status).toBe(400);
  const sibling = await world.addKey('acme');
  expect((await world.request('POST', '/api/routes/import', { key: sibling, body: readable })).status).toBe(400);
  const [first] = readOf(clients);
  first?.destroy();
  await eventually(() => expect(readOf(clients.filter((each) => each !== first))).toHaveLength(fitting));
}, 60_000);

test('four organizations whose bodies do not end leave room to a fifth one', async () => {
  const keys = [world.admin];
  for (const slug of others.slice(0, 3)) keys.push(await world.addKey(slug));
  const clients = keys.flatMap((key) => Array.from({ length: fitting }, () => unfinishedImport(key)));
  // Three have theirs; the fourth has half of the last quarter.
  await eventually(() => expect(readOf(clients)).toHaveLength(3 * fitting + fitting / 2));
  const key = await world.addKey('hooli');
  expect((await world.request('POST', '/api/routes/import', { key, body: readable })).status).toBe(400);
  expect(readOf(clients)).toHaveLength(3 * fitting + fitting / 2);
}, 60_000);
