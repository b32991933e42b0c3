import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { silentLogger } from '../../../test/support/logger.ts';
import { routeRecord as route, sourceRecord as source } from '../../../test/support/records.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { blockingConnection, commandConnection, type RedisClient } from '../../redis/connection.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { changeStreamBlockMs } from './change-stream.ts';
import { RedisRegistryPublisher } from './registry-publisher.ts';
import { RedisRegistryReader } from './registry-reader.ts';

const prefix = 'test:';

interface StartedReader {
  reader: RedisRegistryReader;
  commands: RedisClient;
  /** On which it reads the changes. */
  line: { pause(): unknown; resume(): unknown };
  changes: string[];
}

let redis: RedisServer;
let publisher: RedisRegistryPublisher;
let epoch: number;
let readers: Pick<StartedReader, 'reader' | 'commands'>[];

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  readers = [];
  await redis.client.flushall();
  publisher = new RedisRegistryPublisher(redis.client, prefix);
  epoch = await publisher.mintEpoch();
  await publisher.markComplete();
});
afterEach(async () => {
  for (const { reader, commands } of readers) {
    await reader.stop();
    commands.disconnect();
  }
});

/** A reader that has taken up the stream. */
async function startReader(): Promise<StartedReader> {
  const commands = commandConnection(redis.url, { commandTimeoutMs: 10_000 });
  commands.on('error', () => {});
  await commands.connect();
  const blocking = blockingConnection(redis.url, { blockMs: changeStreamBlockMs + 30_000 });
  blocking.on('error', () => {});
  const reader = new RedisRegistryReader({ redis: commands, blocking, prefix, clock: systemClock, logger: silentLogger });
  const changes: string[] = [];
  reader.onChange((changeKey) => changes.push(changeKey));
  reader.start();
  readers.push({ reader, commands });
  await until(() => changes.includes('*'));
  changes.length = 0;
  if (!('stream' in blocking)) throw new Error('a cluster has more than one line');
  return { reader, commands, line: blocking.stream, changes };
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 30_000;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error('the condition did not come true within 30 s');
    await sleep(5);
  }
}

const changeCount = async (): Promise<number> => await redis.client.xlen(`${prefix}{cfg}:changes`);

test('keys that are requested together, and are not there, share few calls of Redis', async () => {
  const { reader, commands } = await startReader();
  const calls = async (): Promise<number> =>
    [...(await commands.info('commandstats')).matchAll(/^cmdstat_(?:hget|hmget|exists):calls=(\d+)/gm)].reduce(
      (sum, [, n]) => sum + Number(n),
      0,
    );
  const before = await calls();
  const found = await Promise.all(Array.from({ length: 2500 }, (_, i) => reader.apiKeyIdByHash(`guess-${i}`)));
  expect(new Set(found)).toEqual(new Set([null]));
  expect((await calls()) - before).toBeLessThan(30);
});

describe('publishing', () => {
  test('a record reads back as it was published, and by its slug', async () => {
    expect(await publisher.publish(epoch, 'source', source())).toBe(true);
    expect(await publisher.get('source', 'src_a')).toEqual(source());
    expect(await publisher.ids('source')).toEqual(['src_a']);
    expect(await redis.client.hgetall(`${prefix}{cfg}:ix:source-slug`)).toEqual({ 'acme/github': 'src_a' });
  });

  test('an equal record, with its keys in another order, is no change and makes no entry', async () => {
    await publisher.publish(epoch, 'source', source());
    const { v, ...rest } = source();
    expect(await publisher.publish(epoch, 'source', { ...rest, v })).toBe(false);
    expect(await changeCount()).toBe(1);
  });

  test('a new slug moves the index entry', async () => {
    await publisher.publish(epoch, 'source', source());
    await publisher.publish(epoch, 'source', source({ slug: 'gitlab' }));
    expect(await redis.client.hgetall(`${prefix}{cfg}:ix:source-slug`)).toEqual({ 'acme/gitlab': 'src_a' });
  });

  test('a slug that another source has taken over stays with it when the first is retracted', async () => {
    await publisher.publish(epoch, 'source', source());
    await publisher.publish(epoch, 'source', source({ id: 'src_b' }));
    await publisher.retract(epoch, 'source', 'src_a');
    expect(await redis.client.hgetall(`${prefix}{cfg}:ix:source-slug`)).toEqual({ 'acme/github': 'src_b' });
  });

  test('a route of another source leaves the set of the first', async () => {
    await publisher.publish(epoch, 'route', route());
    await publisher.publish(epoch, 'route', route({ sourceId: 'src_b' }));
    expect(await redis.client.exists(`${prefix}{cfg}:ix:routes-of:src_a`)).toBe(0);
    expect(await redis.client.smembers(`${prefix}{cfg}:ix:routes-of:src_b`)).toEqual(['rte_a']);
  });

  test('retracting takes the record and its index entries away, once', async () => {
    await publisher.publish(epoch, 'route', route());
    expect(await publisher.retract(epoch, 'route', 'rte_a')).toBe(true);
    expect(await publisher.get('route', 'rte_a')).toBeNull();
    expect(await redis.client.exists(`${prefix}{cfg}:ix:routes-of:src_a`)).toBe(0);
    expect(await publisher.retract(epoch, 'route', 'rte_a')).toBe(false);
  });

  test('the sequence is dense', async () => {
    for (let generation = 1; generation <= 5; generation++) await publisher.publish(epoch, 'source', source({ generation }));
    const entries = await redis.client.xrange(`${prefix}{cfg}:changes`, '-', '+');
    const numbers = entries.map(([id]) => Number(id.split('-')[0]));
    const first = numbers[0] ?? 0;
    expect(numbers).toEqual([0, 1, 2, 3, 4].map((i) => first + i));
  });

  test('the stream is trimmed to about 10,000 changes', async () => {
    // All at once would take longer than a command may.
    for (let first = 0; first < 10_500; first += 500) {
      const ids = Array.from({ length: 500 }, (_, i) => first + i);
      await Promise.all(ids.map((i) => publisher.publish(epoch, 'source', source({ id: `src_${i}`, slug: `s${i}` }))));
    }
    expect(await changeCount()).toBeLessThan(10_200);
    expect((await publisher.ids('source')).length).toBe(10_500);
  });

  test('a record of 10 concurrent writers is that of one of them, with one index entry', async () => {
    await Promise.all(
      Array.from({ length: 10 }, (_, i) => publisher.publish(epoch, 'source', source({ slug: `s${i}` })).catch(() => false)),
    );
    const stored = await publisher.get('source', 'src_a');
    expect(await redis.client.hgetall(`${prefix}{cfg}:ix:source-slug`)).toEqual({ [`acme/${stored?.slug}`]: 'src_a' });
  });
});

describe('the fence', () => {
  test('an older epoch can neither publish nor retract', async () => {
    await publisher.publish(epoch, 'source', source());
    await publisher.mintEpoch();
    await expect(publisher.publish(epoch, 'source', source({ generation: 2 }))).rejects.toMatchObject({ code: 'CONFLICT' });
    await expect(publisher.retract(epoch, 'source', 'src_a')).rejects.toMatchObject({
      code: 'CONFLICT',
      details: { epoch: [expect.any(String)] },
    });
    expect(await publisher.get('source', 'src_a')).toEqual(source());
  });

  test('epochs minted after a loss of all data are newer than those before', async () => {
    for (let i = 0; i < 3; i++) epoch = await publisher.mintEpoch();
    await redis.client.flushall();
    await sleep(10);
    expect(await publisher.mintEpoch()).toBeGreaterThan(epoch);
  });

  test('an epoch that a failover has lost is not minted again', async () => {
    const key = `${prefix}{cfg}:epoch`;
    const before = (await redis.client.get(key)) ?? '';
    const lost = await publisher.mintEpoch();
    await redis.client.set(key, before);
    await sleep(10);
    expect(await publisher.mintEpoch()).toBeGreaterThan(lost);
  });

  test('after a loss of all data the leader continues with its epoch', async () => {
    await redis.client.flushall();
    expect(await publisher.publish(epoch, 'source', source())).toBe(true);
    await expect(publisher.publish(epoch - 1, 'source', source({ generation: 2 }))).rejects.toMatchObject({ code: 'CONFLICT' });
  });
});

describe('the marker', () => {
  test('it stays as long as the data, and is another one afterwards', async () => {
    const marker = await publisher.marker();
    expect(await publisher.marker()).toBe(marker);
    await redis.client.flushall();
    expect(await publisher.marker()).not.toBe(marker);
  });
});

describe('reading', () => {
  test('records and index entries are read, the second time without Redis', async () => {
    const { reader, commands } = await startReader();
    await publisher.publish(epoch, 'source', source());
    await publisher.publish(epoch, 'route', route());
    const read = async (): Promise<unknown> => [
      await reader.sourceIdBySlug('acme', 'github'),
      await reader.get('source', 'src_a'),
      await reader.routeIdsOfSource('src_a'),
    ];
    await until(async () => (await reader.routeIdsOfSource('src_a')).length === 1);
    expect(await read()).toEqual(['src_a', source(), ['rte_a']]);
    commands.disconnect();
    expect(await read()).toEqual(['src_a', source(), ['rte_a']]);
  });

  test('a change reaches the reader, and what it had is gone', async () => {
    await publisher.publish(epoch, 'source', source());
    const { reader, changes } = await startReader();
    expect((await reader.get('source', 'src_a'))?.enabled).toBe(true);
    expect(await reader.sourceIdBySlug('acme', 'github')).toBe('src_a');
    await publisher.publish(epoch, 'source', source({ enabled: false, slug: 'gitlab' }));
    await until(() => changes.length === 3);
    expect(changes).toEqual(['source:src_a', 'source-slug:acme/github', 'source-slug:acme/gitlab']);
    expect((await reader.get('source', 'src_a'))?.enabled).toBe(false);
    expect(await reader.sourceIdBySlug('acme', 'github')).toBeNull();
  });

  test('what is not there is requested again', async () => {
    const { reader } = await startReader();
    expect(await reader.get('source', 'src_a')).toBeNull();
    await redis.client.hset(`${prefix}{cfg}:rec:source`, 'src_a', JSON.stringify(source()));
    expect(await reader.get('source', 'src_a')).toEqual(source());
  });

  test('a derived value is made once, and again when something it depends on has changed', async () => {
    await publisher.publish(epoch, 'route', route());
    const { reader, changes } = await startReader();
    let made = 0;
    const derive = (): Promise<number> =>
      reader.derive('plan', async () => ({ value: ++made, dependsOn: ['routes-of:src_a', 'route:rte_a'] }));
    expect([await derive(), await derive()]).toEqual([1, 1]);
    await publisher.publish(epoch, 'route', route({ id: 'rte_b' }));
    await until(() => changes.includes('routes-of:src_a'));
    expect([await derive(), await derive()]).toEqual([2, 2]);
    await publisher.publish(epoch, 'source', source());
    await until(() => changes.includes('source:src_a'));
    expect(await derive()).toBe(2);
  });

  test('a fill whose key changes while it is under way is not kept, and nobody joins it any more', async () => {
    await publisher.publish(epoch, 'route', route());
    const { reader, changes } = await startReader();
    const gate = Promise.withResolvers<void>();
    const slow = reader.derive('plan', async () => {
      await gate.promise;
      return { value: 'old', dependsOn: ['source:src_a'] };
    });
    await publisher.publish(epoch, 'source', source());
    await until(() => changes.includes('source:src_a'));
    const derive = (value: string): Promise<string> => reader.derive('plan', async () => ({ value, dependsOn: ['source:src_a'] }));
    expect(await derive('new')).toBe('new');
    gate.resolve();
    expect(await slow).toBe('old');
    expect(await derive('newer')).toBe('new');
  });

  test('a fill under way during a flush is not kept', async () => {
    const { reader, changes } = await startReader();
    const gate = Promise.withResolvers<void>();
    const slow = reader.derive('plan', async () => {
      await gate.promise;
      return { value: 'old', dependsOn: ['source:src_a'] };
    });
    await redis.client.flushall();
    await publisher.publish(epoch, 'source', source());
    await until(() => changes.includes('*'));
    gate.resolve();
    await slow;
    expect(await reader.derive('plan', async () => ({ value: 'new', dependsOn: [] }))).toBe('new');
  });

  test('overlapping reads of one key are one read', async () => {
    const { reader } = await startReader();
    let made = 0;
    const derive = (): Promise<number> => reader.derive('plan', async () => ({ value: ++made, dependsOn: [] }));
    expect(await Promise.all([derive(), derive(), derive()])).toEqual([1, 1, 1]);
  });

  test('a failed fill is tried again by the next reader', async () => {
    const { reader } = await startReader();
    await expect(reader.derive('plan', async () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    expect(await reader.derive('plan', async () => ({ value: 1, dependsOn: [] }))).toBe(1);
  });
});

describe('what a reader may have missed', () => {
  test('a gap in the sequence flushes', async () => {
    await publisher.publish(epoch, 'source', source());
    const { reader, changes } = await startReader();
    await reader.get('source', 'src_a');
    await redis.client.incr(`${prefix}{cfg}:seq`);
    await publisher.publish(epoch, 'route', route());
    await until(() => changes.length > 0);
    expect(changes).toEqual(['*']);
  });

  test('changes trimmed away while the reader was held up flush, and what they changed is read again', async () => {
    await publisher.publish(epoch, 'source', source());
    const { reader, line, changes } = await startReader();
    expect((await reader.get('source', 'src_a'))?.generation).toBe(1);
    // The answer to the read that waits stays unread.
    line.pause();
    await publisher.publish(epoch, 'route', route());
    await publisher.publish(epoch, 'source', source({ generation: 2 }));
    await publisher.publish(epoch, 'route', route({ id: 'rte_b' }));
    await redis.client.xtrim(`${prefix}{cfg}:changes`, 'MAXLEN', '=', 1);
    expect((await reader.get('source', 'src_a'))?.generation).toBe(1);
    line.resume();
    await until(() => changes.includes('*'));
    expect(changes).toEqual(['route:rte_a', 'routes-of:src_a', '*']);
    expect((await reader.get('source', 'src_a'))?.generation).toBe(2);
  });

  test('another marker flushes, though the sequence continues', async () => {
    await publisher.publish(epoch, 'source', source());
    const { changes } = await startReader();
    await redis.client.set(`${prefix}{cfg}:marker`, 'another');
    await publisher.publish(epoch, 'source', source({ generation: 2 }));
    await until(() => changes.length > 0);
    expect(changes).toEqual(['*']);
  });

  test('FLUSHALL and a new publication flush at once, and the new record is read', async () => {
    await publisher.publish(epoch, 'source', source());
    const { reader, changes } = await startReader();
    await reader.get('source', 'src_a');
    await redis.client.flushall();
    await publisher.publish(epoch, 'source', source({ name: 'after' }));
    await until(() => changes.includes('*'));
    expect((await reader.get('source', 'src_a'))?.name).toBe('after');
  });

  test('in an emptied Redis nothing is "not found": it is UNAVAILABLE until everything is published', async () => {
    const { reader } = await startReader();
    await redis.client.flushall();
    await expect(reader.get('source', 'src_a')).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    await publisher.marker();
    await expect(reader.get('source', 'src_a')).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    // Some of a source's routes are not all of them.
    const again = await publisher.mintEpoch();
    await publisher.publish(again, 'route', route({ sourceId: 'src_a' }));
    await expect(reader.routeIdsOfSource('src_a')).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    await publisher.markComplete();
    expect(await reader.routeIdsOfSource('src_a')).toEqual(['rte_a']);
    expect(await reader.get('source', 'src_a')).toBeNull();
  });

  test('while Redis is down cached values are served and others fail without a wait; its return flushes', async () => {
    await publisher.publish(epoch, 'source', source());
    const { reader, changes } = await startReader();
    await reader.get('source', 'src_a');
    await redis.kill('SIGKILL');
    await until(async () => (await redis.client.ping().catch(() => 'gone')) === 'gone');
    expect(await reader.get('source', 'src_a')).toEqual(source());
    const startedMs = Date.now();
    for (let i = 0; i < 20; i++) await expect(reader.get('source', `src_${i}`)).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    // A command that waits takes 10 s.
    expect(Date.now() - startedMs).toBeLessThan(20_000);
    await redis.start();
    await until(() => changes.includes('*'));
    await until(async () => (await redis.client.ping().catch(() => '')) === 'PONG');
  });
});
