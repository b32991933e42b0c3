// Sends requests that are costly to refuse or to evaluate, as fast as they are answered, until it is ended. Started by hack/bench/neighbours.ts, niced:
//   node hack/bench/lib/costly-requests.ts <origin> <key> <name of the input> <senders>
// Prints how many it has had answered when it ends, by status.
import { Agent, setGlobalDispatcher } from 'undici';

const members = (count: number): Record<string, number> => Object.fromEntries(Array.from({ length: count }, (_, i) => [`unknown${i}`, 1]));
const badHeaders = (count: number): Record<string, string> =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`bad header ${i}`, 'x']));
const records = (count: number, record: object): object => ({
  destinations: Array.from({ length: count }, () => record),
  conflictStrategy: 'skip',
  validateOnly: true,
});

interface CostlyInput {
  path: string;
  senders: number;
  body: () => object;
}

/** Event type of an organization, and how many of its subscriptions evaluate an event of it by a filter at its bound. */
export const costlyType = {
  name: 'costly.made',
  subscriptions: 250,
  filter: (i: number) => `event.data.a.exists(x, event.data.b.contains("y${i}"))`,
};

export const costlyInputs: Readonly<Record<string, CostlyInput>> = {
  'imports of a record with 450,000 unknown fields (8 MB)': {
    path: '/destinations/import',
    senders: 2,
    body: () => records(1, members(450_000)),
  },
  'imports of 1,000 records with 550 unknown fields': { path: '/destinations/import', senders: 2, body: () => records(1000, members(550)) },
  'imports of 1,000 records with 100 bad headers': {
    path: '/destinations/import',
    senders: 2,
    body: () => records(1000, { name: 'x', headers: badHeaders(100) }),
  },
  'sources with 60,000 unknown fields': { path: '/sources', senders: 8, body: () => members(60_000) },
  'destinations with 30,000 bad headers': { path: '/destinations', senders: 8, body: () => ({ name: 'x', headers: badHeaders(30_000) }) },
  'filters tried on 60,000 members': {
    path: '/filters/test',
    senders: 8,
    body: () => ({ conditions: [{ field: 'payload.a', operator: 'equals', value: 1 }], payload: members(60_000) }),
  },
  'events for 250 subscriptions with filters at their bound': {
    path: '/send-event',
    senders: 8,
    body: () => ({ eventType: costlyType.name, payload: { a: Array.from({ length: 1000 }, () => 1), b: 'x'.repeat(13_900) } }),
  },
};

/** Sends such requests without end, each sender one after the other; counts the answers by status. */
export async function sendCostly(input: CostlyInput, origin: string, key: string, answered: Record<string, number>): Promise<void> {
  const body = JSON.stringify(input.body());
  await Promise.all(
    Array.from({ length: input.senders }, async () => {
      for (;;) {
        const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
        const answer = await fetch(`${origin}/api${input.path}`, { method: 'POST', headers, body }).catch(() => null);
        await answer?.arrayBuffer();
        countAnswer(answered, answer);
      }
    }),
  );
}

/** Counts the answer by its status; null: no answer. */
export function countAnswer(answered: Record<string, number>, answer: Response | null): void {
  const status = String(answer?.status ?? 'none');
  answered[status] = (answered[status] ?? 0) + 1;
}

/** On SIGTERM prints the counts as JSON and ends the process. */
export function printAtEnd(counts: object): void {
  process.on('SIGTERM', () => process.stdout.write(`${JSON.stringify(counts)}\n`, () => process.exit(0)));
}

if (import.meta.main) {
  const [origin = '', key = '', name = ''] = process.argv.slice(2);
  const input = costlyInputs[name];
  if (input === undefined) throw new Error(`there is no input ${name}`);
  setGlobalDispatcher(new Agent({ connections: input.senders }));
  const answered: Record<string, number> = {};
  printAtEnd(answered);
  await sendCostly(input, origin, key, answered);
}
