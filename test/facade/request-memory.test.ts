import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { requestMemoryLimits } from '../../src/facade/http/request-memory.ts';
import { eventually } from '../support/eventually.ts';
import { patientClock } from '../support/patient-clock.ts';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';

const importBytes = 8 * 1024 * 1024;
const fitting = requestMemoryLimits.ofOrganization / importBytes;
let world: FacadeWorld;
beforeAll(async () => {
  // Waits for memory last longer than the test does.
  world = await startFacadeWorld({ clock: patientClock });
  await world.addOrganization('globex');
});
afterAll(() => world?.stop());

const sockets: Socket[] = [];
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});

/** A client that sends all of the body of an import but its last byte. */
function unfinishedImport(): Socket {
  const { hostname: host, port } = new URL(world.baseUrl);
  const socket = connect(Number(port), host).on('error', () => undefined);
  const head = `POST /api/routes/import HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${world.admin}\r\ncontent-type: application/json\r\ncontent-length: ${importBytes}\r\n\r\n`;
  socket.write(Buffer.concat([Buffer.from(head), Buffer.alloc(importBytes - 1, ' ')]));
  sockets.push(socket);
  return socket;
}
/** Those whose bodies the process has read; what the system keeps of the others is less than their rest. */
const readOf = (clients: readonly Socket[]): Socket[] => clients.filter(({ writableLength }) => writableLength === 0);

test('only as many bodies that do not end are read as an organization has room for, and others are served beside them', async () => {
  const clients = Array.from({ length: 3 * fitting }, unfinishedImport);
  await eventually(() => expect(readOf(clients)).toHaveLength(fitting));
  await sleep(500);
  expect(readOf(clients)).toHaveLength(fitting);
  const body = { name: 'Orders', description: 'x'.repeat(400), slug: 'orders' };
  expect((await world.request('GET', '/api/sources')).status).toBe(200);
  expect((await world.request('POST', '/api/sources', { body })).status).toBe(201);
  const key = await world.addKey('globex');
  const large = { routes: [], padding: 'x'.repeat(200_000) };
  expect((await world.request('POST', '/api/routes/import', { key, body: large })).status).toBe(400);
  const [first] = readOf(clients);
  first?.destroy();
  await eventually(() => expect(readOf(clients.filter((each) => each !== first))).toHaveLength(fitting));
}, 60_000);
