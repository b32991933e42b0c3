// How fast events go from ingest to their receiver through one route (issue 3, first figures):
//   node hack/bench/throughput.ts [events] [senders]
// Real api and delivery processes on a Redis with AOF everysec; payload 400 bytes, signed, attempts recorded. Sender and receiver
// are this process, on the same cores. Prints one table with the ceiling of the same run, and checks exact delivery.
import { execFileSync } from 'node:child_process';
import { createServer, type Server } from 'node:http';
import { Agent, type Dispatcher } from 'undici';
import { Keyring } from '../../src/core/sealing.ts';
import { recordSealingContext } from '../../src/core/sealing-contexts.ts';
import { RedisRegistryPublisher } from '../../src/data/registry-publisher.ts';
import { freePort } from '../../test/support/ports.ts';
import { startProgram } from '../../test/support/program.ts';
import { destinationRecord, organizationRecord, routeRecord } from '../../test/support/record-registry.ts';
import { sourceRecord } from '../../test/support/records.ts';
import { startRedis } from '../../test/support/redis.ts';
import { waitUntil } from '../../test/support/wait-until.ts';

const [events = 20_000, senders = 64] = process.argv.slice(2).map(Number);
const payloadBytes = 400;
const key = Buffer.alloc(32, 1);
const built = new URL('../../dist/cmd/posthorn.js', import.meta.url).pathname;

/** Sends `count` requests, `senders` at a time; resolves with the seconds that it took and how many got no 2xx. */
async function sendAll(agent: Agent, origin: string, path: string, count: number): Promise<{ seconds: number; refused: number }> {
  const begin = performance.now();
  let next = 0;
  let refused = 0;
  const send = (): Promise<void> => {
    const number = next++;
    const head = `{"number":${number},"sent":${performance.now()},"pad":"`;
    const body = `${head}${'x'.repeat(Math.max(0, payloadBytes - head.length - 2))}"}`;
    return new Promise((resolve) => {
      const end = (status: number): void => {
        if (status < 200 || status > 299) refused++;
        resolve();
      };
      let status = 0;
      const handler: Dispatcher.DispatchHandler = {
        onRequestStart() {},
        onResponseStart(_, statusCode) {
          status = statusCode;
        },
        onResponseData() {},
        onResponseEnd: () => end(status),
        onResponseError: () => end(0),
      };
      agent.dispatch({ origin, path, method: 'POST', body, headers: ['content-type', 'application/json'] }, handler);
    });
  };
  await Promise.all(
    Array.from({ length: senders }, async () => {
      while (next < count) await send();
    }),
  );
  return { seconds: (performance.now() - begin) / 1000, refused };
}

/** Writes down each event that arrives: how often, and after how many ms. */
async function startSink(): Promise<{ server: Server; origin: string; arrivals: Map<number, number>; latenciesMs: number[] }> {
  const arrivals = new Map<number, number>();
  const latenciesMs: number[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const [, number, sent] = /"number":(\d+),"sent":([\d.]+)/.exec(Buffer.concat(chunks).toString('latin1')) ?? [];
      arrivals.set(Number(number), (arrivals.get(Number(number)) ?? 0) + 1);
      latenciesMs.push(performance.now() - Number(sent));
      response.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return { server, origin: `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`, arrivals, latenciesMs };
}

async function main(): Promise<void> {
  // What is measured is what the image holds.
  execFileSync('npm', ['run', '--silent', 'build'], { stdio: 'inherit' });
  const sink = await startSink();
  const agent = new Agent({ connections: senders, pipelining: 1 });
  await sendAll(agent, sink.origin, '/', 2000);
  const bare = await sendAll(agent, sink.origin, '/', events);
  sink.arrivals.clear();
  sink.latenciesMs.length = 0;

  const redis = await startRedis(['--appendonly', 'yes', '--appendfsync', 'everysec']);
  const port = await freePort();
  const environment = {
    POSTHORN_REDIS_URL: redis.url,
    POSTHORN_RESOURCE_STORE: 'redis',
    POSTHORN_ENCRYPTION_KEYS: `k1:${key.toString('base64')}`,
    POSTHORN_EGRESS_ALLOWED_CIDRS: '127.0.0.0/8',
    POSTHORN_LOG_LEVEL: 'warn',
    POSTHORN_HOST: '127.0.0.1',
  };
  await publish(new RedisRegistryPublisher(redis.client, 'posthorn:'), `${sink.origin}/`);
  const start = async (role: string, own: Record<string, string>) =>
    startProgram([role], { ...environment, ...own, POSTHORN_OPS_PORT: String(await freePort()) }, built);
  const programs = [await start('api', { POSTHORN_PORT: String(port) }), await start('delivery', {})];
  try {
    const ingest = `http://127.0.0.1:${port}`;
    await waitUntil('the ingest to answer', 30_000, async () =>
      (await sendAll(agent, ingest, '/ingest/acme/github', 1)).refused === 0 ? true : undefined,
    );
    await waitUntil('the first delivery', 30_000, () => (sink.arrivals.size > 0 ? true : undefined));
    sink.arrivals.clear();
    sink.latenciesMs.length = 0;
    const begin = performance.now();
    const accepted = await sendAll(agent, ingest, '/ingest/acme/github', events);
    const expected = events - accepted.refused;
    await waitUntil('all deliveries', 120_000, () => (sink.arrivals.size >= expected ? true : undefined));
    const seconds = (performance.now() - begin) / 1000;
    const memory = Number(/used_memory:(\d+)/.exec(await redis.client.info('memory'))?.[1]);
    report({
      bare: events / bare.seconds,
      ingest: events / accepted.seconds,
      delivered: expected / seconds,
      sink,
      expected,
      refused: accepted.refused,
      memory,
    });
  } finally {
    for (const program of programs) await program.stop();
    await redis.stop();
    await agent.close();
    sink.server.close();
  }
}

async function publish(publisher: RedisRegistryPublisher, url: string): Promise<void> {
  const secret = new Keyring([{ id: 'k1', key }]).seal(
    `whsec_${Buffer.alloc(32, 2).toString('base64')}`,
    recordSealingContext('org_a', 'destination', 'dst_a', 'signingSecrets'),
  );
  const epoch = await publisher.mintEpoch();
  await publisher.markComplete();
  await publisher.publish(epoch, 'organization', organizationRecord({ slug: 'acme' }));
  await publisher.publish(epoch, 'source', sourceRecord({ provider: 'generic' }));
  await publisher.publish(epoch, 'destination', destinationRecord({ url, signingSecrets: [secret] }));
  await publisher.publish(epoch, 'route', routeRecord());
}

interface Figures {
  bare: number;
  ingest: number;
  delivered: number;
  sink: Awaited<ReturnType<typeof startSink>>;
  expected: number;
  refused: number;
  memory: number;
}

function report({ bare, ingest, delivered, sink, expected, refused, memory }: Figures): void {
  const sorted = sink.latenciesMs.toSorted((a, b) => a - b);
  const percentile = (share: number): string => `${(sorted[Math.floor((sorted.length - 1) * share)] ?? 0).toFixed(1)} ms`;
  const duplicates = [...sink.arrivals.values()].reduce((sum, times) => sum + times - 1, 0);
  const rows: [string, string][] = [
    ['bare undici loop', `${bare.toFixed(0)}/s`],
    ['ingest', `${ingest.toFixed(0)}/s`],
    ['ingest → delivered', `${delivered.toFixed(0)}/s (${((100 * delivered) / bare).toFixed(0)} % of the ceiling)`],
    ['latency p50 / p99 (closed loop)', `${percentile(0.5)} / ${percentile(0.99)}`],
    ['Redis bytes per finished message', (memory / events).toFixed(0)],
    ['refused / lost / duplicated', `${refused} / ${expected - sink.arrivals.size} / ${duplicates}`],
  ];
  console.log(`| ${events} events, ${senders} senders, ${payloadBytes} bytes | |\n|---|---|`);
  for (const [what, figure] of rows) console.log(`| ${what} | ${figure} |`);
}

await main();
