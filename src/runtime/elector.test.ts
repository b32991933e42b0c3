import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { silentLogger } from '../../test/support/logger.ts';
import { assertProperty } from '../../test/support/property.ts';
import { PosthornError } from '../core/errors.ts';
import { electionTimes, LeaderElector, type Term } from './elector.ts';
import { type Lease, type LeaseApi, LeaseLock } from './lease-elector.ts';

type Fault = 'none' | 'lost request' | 'lost answer' | 'slow answer' | 'slow request';

/** A Lease with the API server's optimistic concurrency, behind a network that can fail. Time is the fake clock's. */
class FaultyLease {
  lease: Lease | null = null;
  #version = 0;

  through(clock: FakeClock, nextFault: () => Fault): LeaseApi {
    const deadlineMs = electionTimes.renewDeadlineMs / 2;
    const call = async (effect: () => unknown): Promise<unknown> => {
      const fault = nextFault();
      if (fault === 'lost request') throw new PosthornError('UNAVAILABLE', 'connection refused');
      if (fault === 'slow request') await clock.sleep(deadlineMs - 1);
      const answer = effect();
      if (fault === 'slow answer') await clock.sleep(deadlineMs - 1);
      if (fault === 'lost answer') {
        await clock.sleep(deadlineMs);
        throw new PosthornError('UNAVAILABLE', 'timeout');
      }
      return answer;
    };
    return {
      get: () =>
        call(() => {
          if (this.lease === null) throw new PosthornError('RESOURCE_NOT_FOUND', 'no lease');
          return this.lease;
        }),
      create: (lease) =>
        call(() => {
          if (this.lease !== null) throw new PosthornError('ALREADY_EXISTS', 'there is one');
          return this.#store(lease);
        }),
      update: (lease) =>
        call(() => {
          if (lease.metadata.resourceVersion !== this.lease?.metadata.resourceVersion) throw new PosthornError('CONFLICT', 'stale');
          return this.#store(lease);
        }),
    };
  }

  #store(lease: Lease): Lease {
    this.lease = { ...lease, metadata: { ...lease.metadata, resourceVersion: String(++this.#version) } };
    return this.lease;
  }
}

function candidate(server: FaultyLease, clock: FakeClock, identity: string, nextFault: () => Fault = () => 'none') {
  const lock = new LeaseLock(server.through(clock, nextFault), { namespace: 'ns', name: 'leader', identity, clock });
  return new LeaderElector(lock, { clock, logger: silentLogger });
}

describe('an election over a Lease', () => {
  test('a second candidate leads only after the first one was silent for the lease duration', async () => {
    const clock = new FakeClock();
    const server = new FaultyLease();
    let cut = false;
    const stop = new AbortController();
    const first = await candidate(server, clock, 'a', () => (cut ? 'lost request' : 'none')).acquire(stop.signal);
    let secondLeadsAtMs = 0;
    void candidate(server, clock, 'b')
      .acquire(stop.signal)
      .then(() => {
        secondLeadsAtMs = clock.now();
      });
    await clock.advance(30_000);
    expect(secondLeadsAtMs).toBe(0);
    cut = true;
    const cutAtMs = clock.now();
    await clock.advance(11_000);
    expect(first?.lost.aborted).toBe(true);
    expect(secondLeadsAtMs).toBe(0);
    await clock.advance(9000);
    expect(secondLeadsAtMs - cutAtMs).toBeGreaterThanOrEqual(13_000);
    expect(secondLeadsAtMs - cutAtMs).toBeLessThanOrEqual(20_000);
    expect(server.lease?.spec).toMatchObject({ holderIdentity: 'b', leaseTransitions: 1, leaseDurationSeconds: 15 });
    stop.abort();
  });

  test('a released lock is taken at the next try', async () => {
    const clock = new FakeClock();
    const server = new FaultyLease();
    const stop = new AbortController();
    const first = await candidate(server, clock, 'a').acquire(stop.signal);
    const second = candidate(server, clock, 'b').acquire(stop.signal);
    await clock.advance(5000);
    await Promise.all([first?.release(), clock.advance(0)]);
    let term: Term | null = null;
    void second.then((got) => {
      term = got;
    });
    await clock.advance(2500);
    expect(term).not.toBeNull();
    stop.abort();
  });

  test('the lease carries times with six digits', async () => {
    const server = new FaultyLease();
    await candidate(server, new FakeClock(), 'a').acquire(new AbortController().signal);
    expect(server.lease?.spec.renewTime).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
  });

  test('a process that was stopped for longer than the renew deadline detects at once that it lost', async () => {
    const clock = new FakeClock();
    const term = await candidate(new FaultyLease(), clock, 'a').acquire(new AbortController().signal);
    clock.jump(electionTimes.leaseDurationMs + 1000);
    await clock.advance(0);
    expect(term?.lost.aborted).toBe(true);
    await expect(term?.renew()).rejects.toMatchObject({ code: 'CONFLICT' });
  });

  test('renewing reports that another candidate has taken the lock', async () => {
    const clock = new FakeClock();
    const server = new FaultyLease();
    const term = await candidate(server, clock, 'a').acquire(new AbortController().signal);
    if (server.lease !== null)
      server.lease = {
        ...server.lease,
        metadata: { ...server.lease.metadata, resourceVersion: 'x' },
        spec: { ...server.lease.spec, holderIdentity: 'b' },
      };
    await expect(term?.renew()).rejects.toMatchObject({ code: 'CONFLICT' });
    expect(term?.lost.aborted).toBe(true);
  });

  test('no two of three candidates lead at the same time, whatever the network does', async () => {
    const fault = fc.constantFrom<Fault>('none', 'none', 'lost request', 'lost answer', 'slow answer', 'slow request');
    await assertProperty(
      fc.asyncProperty(fc.array(fault, { minLength: 30, maxLength: 120 }), async (faults) => {
        const clock = new FakeClock();
        const server = new FaultyLease();
        const stop = new AbortController();
        const leading = new Set<string>();
        let next = 0;
        const run = async (identity: string): Promise<void> => {
          const elector = candidate(server, clock, identity, () => faults[next++] ?? 'none');
          while (!stop.signal.aborted) {
            const term = await elector.acquire(stop.signal);
            if (term === null) return;
            if (!term.lost.aborted) {
              leading.add(identity);
              await new Promise((resolve) => term.lost.addEventListener('abort', resolve, { once: true }));
              leading.delete(identity);
            }
            await clock.sleep(500, stop.signal);
          }
        };
        for (const identity of ['a', 'b', 'c']) void run(identity);
        for (let i = 0; i < 90; i++) {
          await clock.advance(1000);
          expect(leading.size).toBeLessThanOrEqual(1);
        }
        stop.abort();
      }),
      15,
    );
  });
});
