import { execFileSync } from 'node:child_process';
import { expect, test } from '@jest/globals';
import { imageArguments } from '../../test/support/program.ts';

/** How often a process collects all of its heap while it reads 24 bodies of 25 MiB, each in pieces of 64 KiB. */
function collections(prepare: string): number {
  const script = `
    import { PerformanceObserver, constants } from 'node:perf_hooks';
    import { setTimeout as sleep } from 'node:timers/promises';
    import { setFlagsFromString } from 'node:v8';
    import { countBuffersAsHeap, trafficHeapGrowthPercent } from '${new URL('./role-process.ts', import.meta.url).href}';
    setFlagsFromString('--heap-growing-percent=' + trafficHeapGrowthPercent);
    ${prepare}
    let collected = 0;
    const observer = new PerformanceObserver((list) => {
      collected += list.getEntries().filter(({ detail }) => detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR).length;
    });
    observer.observe({ entryTypes: ['gc'] });
    const kept = [];
    for (let i = 0; i < 24; i++) {
      const body = Buffer.allocUnsafeSlow(400 * 65_536);
      for (let k = 0; k < 400; k++) {
        Buffer.allocUnsafeSlow(65_536).copy(body, k * 65_536);
        if (k % 32 === 0) await sleep(1);
      }
      kept.push(body);
      if (kept.length > 2) kept.shift();
    }
    await sleep(1);
    console.log(collected);`;
  // With threads for it, V8 begins the next collection earlier or later as they get time of the processor.
  const args = [...imageArguments(), '--single-threaded-gc', '--input-type=module', '--eval', script];
  return Number(execFileSync(process.execPath, args, { encoding: 'utf8' }));
}

test('V8 collects all of the heap less often for large buffers that come and go once these count as the heap does', () => {
  const before = collections('');
  expect(before).toBeGreaterThan(8);
  expect(collections('countBuffersAsHeap();')).toBeLessThan(before / 2);
});
