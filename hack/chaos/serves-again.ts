import { eventually } from '../../test/support/eventually.ts';
import type { Sink } from '../bench/lib/sink.ts';
import type { SteadySender } from './steady-sender.ts';

/** Waits until an event that is sent from now on is accepted and has arrived everywhere; answers after how many ms. Throws after `maxMs`. */
export async function servesAgain(sender: SteadySender, sinks: readonly Sink[], maxMs: number): Promise<number> {
  const beginMs = performance.now();
  const from = sender.sent.size;
  await eventually('an event to be accepted and delivered', maxMs, () => {
    for (let number = from; number < sender.sent.size; number++)
      if (sender.accepted.has(number) && sinks.every(({ arrivals }) => arrivals.has(number))) return true;
    return undefined;
  });
  return performance.now() - beginMs;
}
