import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { IngestUnderTest } from '../../test/support/ingest.ts';
import { silentLogger } from '../../test/support/logger.ts';
import type { CompiledFilter } from '../core/filter-evaluation.ts';
import { type IngestPlan, ingestPlan } from './ingest-plan.ts';

const routeCount = 60;
const filterMs = 20;
let ingest: IngestUnderTest;
beforeAll(async () => {
  ingest = await IngestUnderTest.start();
});
afterAll(() => ingest.stop());

/** Gives the source as many routes, whose filters take 20 ms each. Returns how many of them have been evaluated. */
async function serveSlowFilters(): Promise<() => number> {
  await ingest.publishSource();
  await ingest.publishRoute();
  const { registry, keyring } = ingest;
  const plan = await ingestPlan({ registry, keyring, logger: silentLogger }, 'acme', 'github');
  let evaluated = 0;
  const filter: CompiledFilter = {
    readsPayload: false,
    *inPieces() {
      evaluated++;
      const endMs = performance.now() + filterMs;
      while (performance.now() < endMs);
      yield;
      return { isMet: true, decidedBy: null };
    },
  };
  const routes = plan.routes.flatMap((route) => Array.from({ length: routeCount }, () => ({ ...route, filter })));
  const slow: IngestPlan = { ...plan, routes };
  Object.assign(registry, { derive: async () => slow });
  return () => evaluated;
}

test('no filter of an event is evaluated any more after its sender has the answer that there was no time for it', async () => {
  await ingest.reset({ storeDeadlineMs: 100 });
  const evaluated = await serveSlowFilters();
  const { status } = await ingest.send('/ingest/acme/github', { body: '{}' });
  const evaluatedBefore = evaluated();
  await sleep(10 * filterMs);
  expect({ status, further: evaluated() - evaluatedBefore }).toEqual({ status: 503, further: 0 });
  expect(evaluatedBefore).toBeLessThan(routeCount);
  expect(ingest.kept.events).toEqual([]);
});
