// Does everything that a hostile organization can do, at once, until it is ended. Started by hack/bench/hostile.ts, niced:
//   node hack/bench/lib/hostile-organization.ts <origin> <port> <key>
// Prints what it was answered, by kind and status, when it ends.
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, setGlobalDispatcher } from 'undici';
import { costlyInputs, costlyType, countAnswer, printAtEnd, sendCostly } from './costly-requests.ts';

/** Names in its manifests, and how many receivers it has (hack/bench/hostile.ts). */
export const hostile = { organization: 'hostile', hanging: 'hang', waiting: 'wait', receivers: 200 };

const localAddress = '127.0.0.2';
const eventsForHanging = 10;
const waitingEvents = { count: 300, bytes: 240 * 1024, senders: 8 };
const slowConnections = 1000;
const bytesApartMs = 2000;
const imports = 'imports of a record with 450,000 unknown fields (8 MB)';
const filters = 'events for 250 subscriptions with filters at their bound';

type Counts = Record<string, number>;

async function post(url: string, body: string, answered: Counts): Promise<void> {
  const answer = await fetch(url, { method: 'POST', body, headers: { 'content-type': 'application/json' } }).catch(() => null);
  await answer?.arrayBuffer();
  countAnswer(answered, answer);
}

async function fillRedis(url: string, answered: Counts): Promise<void> {
  const body = JSON.stringify({ pad: 'x'.repeat(waitingEvents.bytes) });
  let left = waitingEvents.count;
  await Promise.all(
    Array.from({ length: waitingEvents.senders }, async () => {
      while (left-- > 0) await post(url, body, answered);
    }),
  );
}

/** Opens a connection that sends a byte of its headers now and then; a new one when it is closed. */
function openSlowly(port: number, closed: Counts): void {
  const socket = connect({ host: '127.0.0.1', port, localAddress });
  socket.write('POST /ingest/hostile/wait HTTP/1.1\r\nhost: posthorn\r\nx-slow: ');
  const timer = setInterval(() => socket.write('x'), bytesApartMs);
  socket.on('error', () => {});
  socket.on('close', () => {
    clearInterval(timer);
    closed['closed'] = (closed['closed'] ?? 0) + 1;
    setTimeout(() => openSlowly(port, closed), 100);
  });
}

if (import.meta.main) {
  const [origin = '', port = '', key = ''] = process.argv.slice(2);
  setGlobalDispatcher(new Agent({ connections: 64, connect: { localAddress } }));
  const answered = { imports: {}, filters: {}, hanging: {}, waiting: {}, connections: {} } satisfies Record<string, Counts>;
  printAtEnd(answered);
  const ofIngest = `${origin}/ingest/${hostile.organization}`;
  for (let i = 0; i < eventsForHanging; i++) await post(`${ofIngest}/${hostile.hanging}`, `{"hang":${i}}`, answered.hanging);
  for (let i = 0; i < slowConnections; i++) openSlowly(Number(port), answered.connections);
  const [costlyImport, costlyEvent] = [costlyInputs[imports], costlyInputs[filters]];
  if (costlyImport === undefined || costlyEvent === undefined) throw new Error(`${costlyType.name} has no input`);
  await Promise.all([
    sendCostly(costlyImport, origin, key, answered.imports),
    sendCostly(costlyEvent, origin, key, answered.filters),
    fillRedis(`${ofIngest}/${hostile.waiting}`, answered.waiting).then(() => sleep(0)),
  ]);
}
