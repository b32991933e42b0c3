// What one organization's costly REST requests do to the events of another, in standalone with everything on one port:
//   node hack/bench/neighbours.ts [seconds] [rounds] [report 0/1]
// The other one posts events to ingest and sends events to a webhook endpoint, both in an open loop; first alone, then beside each kind of request.
// Their senders are niced, so that what is measured is what the product does with them and not the want of processors. Medians of the rounds.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { newApiKey } from '../../src/core/api-key-hash.ts';
import { freePort } from '../../test/support/ports.ts';
import { startProgram } from '../../test/support/program.ts';
import { buildProgram, builtProgram } from '../lib/built-program.ts';
import { costlyInputs, costlyType } from './lib/costly-requests.ts';
import { ms, percentile, report } from './lib/report.ts';
import { startSink } from './lib/sink.ts';
import { manifest, StandaloneClient } from './lib/standalone-client.ts';
import { Sender, type Sent } from './lib/traffic.ts';

const [seconds = 8, rounds = 3, isKept = 1] = process.argv.slice(2).map(Number);
const rates = { ingest: 50, send: 10 };
const bounds = { ingest: 50, send: 300 };
const warmUpMs = 1000;
const attacker = new URL('lib/costly-requests.ts', import.meta.url).pathname;
const [own, other] = [newApiKey(), newApiKey()];

const directory = mkdtempSync(join(tmpdir(), 'posthorn-neighbours-'));
const manifests = join(directory, 'manifests');
const port = await freePort();
const origin = `http://127.0.0.1:${port}`;

function writeManifests(): void {
  mkdirSync(manifests);
  const objects = [
    manifest('Organization', 'other', { namespace: 'other' }),
    manifest('ApiKey', 'bench', { sha256: other.sha256, role: 'admin' }, 'other'),
    manifest('Source', 'shop', { provider: 'generic' }, 'other'),
  ];
  for (const [i, each] of objects.entries()) writeFileSync(join(manifests, `${i}.json`), each);
}

interface Probed {
  ingest: Sent;
  send: Sent;
}

async function probe(senders: { ingest: Sender; send: Sender }): Promise<Probed> {
  const [ingest, send] = await Promise.all([
    senders.ingest.openLoop('/ingest/other/shop', rates.ingest, seconds),
    senders.send.openLoop('/api/send-event', rates.send, seconds),
  ]);
  return { ingest, send };
}

/** Runs while the requests are made; answers with how these were answered, by status. */
async function beside<T>(name: string, run: () => Promise<T>): Promise<{ found: T; answered: string }> {
  const child = spawn('nice', ['-n', '19', process.execPath, attacker, origin, own.key, name], { stdio: ['ignore', 'pipe', 'inherit'] });
  const printed = text(child.stdout);
  const ended = once(child, 'exit');
  try {
    await sleep(warmUpMs);
    const found = await run();
    child.kill('SIGTERM');
    return { found, answered: (await printed).trim() };
  } finally {
    child.kill('SIGTERM');
    await ended;
  }
}

// What is measured is what the image holds.
buildProgram();
writeManifests();
const sink = await startSink();
const program = startProgram(
  ['standalone', '--manifests', manifests],
  {
    POSTHORN_PORT: String(port),
    POSTHORN_DATA_DIR: join(directory, 'data'),
    POSTHORN_API_KEY: own.key,
    POSTHORN_ALLOW_INSECURE_ENDPOINTS: 'true',
    POSTHORN_LOG_LEVEL: 'warn',
  },
  builtProgram,
);
const senders = {
  ingest: new Sender(origin, 64),
  send: new Sender(origin, 64, {
    headers: ['authorization', `Bearer ${other.key}`],
    around: (payload) => `{"eventType":"order.made","payload":${payload}}`,
  }),
};
const found = new Map<string, Probed[]>();
const answers = new Map<string, string[]>();
try {
  await program.waitForOutput(/^posthorn ready/m, 60_000);
  await new StandaloneClient(origin, other.key).subscribe('order.made', 1, sink.origin);
  await new StandaloneClient(origin, own.key).subscribe(costlyType.name, costlyType.subscriptions, sink.origin, costlyType.filter);
  await probe(senders);
  for (let round = 0; round < rounds; round++) {
    found.set('alone', [...(found.get('alone') ?? []), await probe(senders)]);
    for (const name of Object.keys(costlyInputs)) {
      const { found: probed, answered } = await beside(name, () => probe(senders));
      found.set(name, [...(found.get(name) ?? []), probed]);
      answers.set(name, [...(answers.get(name) ?? []), answered]);
    }
  }
} finally {
  await Promise.all([senders.ingest.close(), senders.send.close()]);
  await program.stop();
  sink.close();
  rmSync(directory, { recursive: true, force: true });
}

const median = (values: readonly number[]): number => percentile(values, 0.5);
let isWithin = true;
const rows = [...found].flatMap(([name, probes]): [string, string][] =>
  (['ingest', 'send'] as const).map((way) => {
    const p99 = median(probes.map((each) => percentile(each[way].answerMs, 0.99)));
    const slowest = Math.max(...probes.flatMap((each) => each[way].answerMs));
    const refused = probes.reduce((sum, each) => sum + each[way].refused, 0);
    if (p99 > bounds[way] || refused > 0) isWithin = false;
    const what = way === 'ingest' ? 'ingest' : 'send-event';
    return [`${name}: ${what} of another organization, p99; slowest; refused`, `${ms(p99)}; ${ms(slowest)}; ${refused}`];
  }),
);
// If nothing was answered, the niced sender got no processor, and the figures beside it are void.
for (const [name, answered] of answers) rows.push([`${name}: answered by status, each round`, answered.join(' ')]);
report(
  isKept === 1 ? 'neighbours' : null,
  `standalone, ${rates.ingest}/s and ${rates.send}/s for ${seconds} s, medians of ${rounds} rounds`,
  rows,
);
process.exitCode = isWithin ? 0 : 1;
