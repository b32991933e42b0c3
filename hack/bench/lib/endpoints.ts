import { type Exactness, missing, numbersOf, type Taken } from './exact-delivery.ts';
import { type Sink, startSink } from './sink.ts';

/** A receiver that is many: each path of it is one. */
export interface Endpoints {
  sink: Sink;
  /** How many arrivals there were, those of an event at the same path counted once. */
  deliveries(): number;
  reset(): void;
  /** `pathsOf`: where an event that was accepted has to come. */
  compare(sent: readonly Taken[], pathsOf: (number: number) => ReadonlySet<string>): Exactness;
}

export async function startEndpoints(): Promise<Endpoints> {
  /** How often each event came to each path. */
  const arrivals = new Map<number, Map<string, number>>();
  let deliveries = 0;
  const sink = await startSink((request, response, number) => {
    const ofEvent = arrivals.get(number) ?? new Map<string, number>();
    arrivals.set(number, ofEvent);
    const path = request.url ?? '';
    const before = ofEvent.get(path) ?? 0;
    if (before === 0) deliveries++;
    ofEvent.set(path, before + 1);
    response.end();
  });
  return {
    sink,
    deliveries: () => deliveries,
    reset: () => {
      sink.reset();
      arrivals.clear();
      deliveries = 0;
    },
    compare: (sent, pathsOf) => {
      const { accepted, possible } = numbersOf(sent);
      const none: ReadonlyMap<string, number> = new Map();
      const total = { lost: 0, unexpected: 0, duplicated: 0 };
      for (const number of accepted) total.lost += missing(pathsOf(number), arrivals.get(number) ?? none);
      for (const [number, ofEvent] of arrivals) {
        const paths = possible.has(number) ? pathsOf(number) : new Set<string>();
        for (const [path, times] of ofEvent) {
          if (!paths.has(path)) total.unexpected++;
          total.duplicated += times - 1;
        }
      }
      return total;
    },
  };
}
