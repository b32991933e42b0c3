import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { lenientClock } from '../../../test/support/lenient-clock.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { attempt, failure, settleAll, takeFrom } from '../../../test/support/queue-worker.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { RedisMessageReader } from '../history/message-reader.ts';
import type { AttemptDetail } from '../shard/attempt-detail.ts';
import { encodeAttempt, type NewAttempt } from '../shard/attempt-record.ts';
import { hashFields } from '../shard/hash-fields.ts';
import { shardKeys } from '../shard/shard-keys.ts';
import { RedisMessageAcceptor } from './message-acceptor.ts';
import { RedisDeliveryQueue } from './redis-delivery-queue.ts';

const prefix = 'test:';
const keys = shardKeys(prefix, 0);
const base = keys.declared[0].slice(0, -'ctl'.length);
let redis: RedisServer;
let queue: RedisDeliveryQueue;
let reader: RedisMessageReader;
beforeAll(async () => {
  redis = await startRedis();
  queue = new RedisDeliveryQueue({ redis: redis.client, prefix });
  reader = new RedisMessageReader({ redis: redis.client, prefix, shards: () => 1 });
});
afterAll(() => redis.stop());
beforeEach(() => redis.client.flushall());

function detailOf(headerBytes = 200): AttemptDetail {
  return {
    requestHeaders: [['x-sent', 's'.repeat(100)]],
    responseHeaders: [
      ['content-type', 'text/plain'],
      ['x-received', 'r'.repeat(headerBytes)],
    ],
    isTruncated: false,
    peerAddress: '192.0.2.1:443',
    reusedConnection: false,
    requestBytes: 2,
    responseBytes: 3,
    phases: { dnsMs: 1, connectMs: 2, tlsMs: 3, firstByteMs: 4, totalMs: 10 },
  };
}
const failed = (body = 'no', detail = detailOf()): NewAttempt => ({ ...failure, responseBody: body, errorMessage: 'status 500', detail });

async function accept(): Promise<{ id: string; key: string; eventKey: string }> {
  const event = newEvent();
  await new RedisMessageAcceptor({ redis: redis.client, prefix, clock: lenientClock }).accept(event);
  const id = event.targets[0]?.messageId ?? '';
  return { id, key: id.slice(6), eventKey: event.id.slice(6) };
}

/** Ends the next attempt of the only message. */
async function attempted(made: NewAttempt, last: 'retry' | 'delivered' | 'dead' = 'retry'): Promise<void> {
  for (;;) {
    await queue.promote();
    const jobs = await takeFrom(queue, 'w1', 1);
    if (jobs.length === 0) continue;
    const outcome =
      last === 'retry'
        ? ({ type: 'retry', attempt: made, delayMs: 0 } as const)
        : last === 'dead'
          ? ({ type: 'dead', attempt: made, reason: 'max_retries_exceeded' } as const)
          : ({ type: 'delivered', attempt: made } as const);
    expect(await settleAll(queue, 'w1', jobs, outcome)).toEqual([true]);
    return;
  }
}

const kept = async (key: string): Promise<number[]> => (await redis.client.hkeys(keys.attempts(key))).map(Number).sort((a, b) => a - b);
async function counted({ key, eventKey }: { key: string; eventKey: string }): Promise<{ message: number; event: number; stored: number }> {
  const stored = (await redis.client.hvals(keys.attempts(key))).reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  return {
    message: Number(await redis.client.hget(keys.message(key), hashFields.message.detailBytes)),
    event: Number(await redis.client.hget(`${base}ad`, eventKey)),
    stored,
  };
}
const bytesOf = async (hash: 'ub' | 'fb'): Promise<number> => Number(await redis.client.hget(base + hash, 'org_a'));

describe('the details of attempts in Redis', () => {
  test.each([
    [1, [1]],
    [2, [1, 2]],
    [3, [1, 2, 3]],
    [4, [1, 3, 4]],
    [12, [1, 11, 12]],
  ])('after %i failed attempts those of %j are kept, and the others have their short form', async (count, expected) => {
    const message = await accept();
    for (let n = 1; n <= count; n++) await attempted(failed(`answer ${n}`), n === count ? 'dead' : 'retry');
    expect(await kept(message.key)).toEqual(expected);
    const attempts = await reader.attempts('org_a', message.id);
    expect(attempts.map(({ attemptNumber, responseBody }) => [attemptNumber, responseBody])).toEqual(
      Array.from({ length: count }, (_, i) => [i + 1, `answer ${i + 1}`]),
    );
    for (const { attemptNumber, detail } of attempts)
      expect([attemptNumber, detail !== undefined]).toEqual([attemptNumber, expected.includes(attemptNumber)]);
    for (const text of Object.entries(await redis.client.hgetall(keys.message(message.key))).flatMap(([name, value]) =>
      /^\d+$/.test(name) ? [value] : [],
    ))
      expect(Buffer.byteLength(text)).toBeLessThanOrEqual(64);
  });

  test('a success after failures is kept beside the first and the last two failures', async () => {
    const message = await accept();
    for (let n = 1; n <= 5; n++) await attempted(failed());
    await attempted({ ...attempt, detail: detailOf() }, 'delivered');
    expect(await kept(message.key)).toEqual([1, 4, 5, 6]);
    expect((await reader.attempts('org_a', message.id)).at(-1)?.detail).toEqual(detailOf());
  });

  test.each(['x'.repeat(10_240), 'é"\n'.repeat(3000), '\u0000'.repeat(10_000)])(
    'an attempt has at most 4 KiB, and a message at most 12 KiB, whatever was received',
    async (body) => {
      const message = await accept();
      const large = failed(body, detailOf(4000));
      for (let n = 1; n <= 4; n++) await attempted(large);
      await attempted({ ...attempt, responseBody: body, detail: detailOf(4000) }, 'delivered');
      const texts = await redis.client.hvals(keys.attempts(message.key));
      for (const text of texts) expect(Buffer.byteLength(text)).toBeLessThanOrEqual(4096);
      expect(texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0)).toBeLessThanOrEqual(12_288);
      expect(await kept(message.key)).toEqual([1, 4, 5]);
      const [first] = await reader.attempts('org_a', message.id);
      expect(body.startsWith(first?.responseBody ?? '-')).toBe(true);
      expect(first?.responseBody?.length).toBeGreaterThan(100);
      expect(first?.detail?.isTruncated).toBe(true);
      expect(first?.detail?.requestHeaders).toEqual(detailOf().requestHeaders);
    },
  );

  test('a success at the first attempt costs what it did without details', async () => {
    const message = await accept();
    await attempted(attempt, 'delivered');
    expect(await kept(message.key)).toEqual([]);
    expect(await redis.client.exists(`${base}ad`)).toBe(0);
    expect(await redis.client.hexists(keys.message(message.key), hashFields.message.detailBytes)).toBe(0);
  });

  test('an attempt that an older release has written stays as it is, and is read', async () => {
    const message = await accept();
    await attempted(failed());
    await attempted(failed());
    const older = JSON.stringify([5, 7, 503, 'older body', 'h', 'older']);
    await redis.client.hset(keys.attempts(message.key), '2', older);
    await redis.client.hdel(keys.message(message.key), '2');
    for (let n = 3; n <= 5; n++) await attempted(failed());
    expect(await kept(message.key)).toEqual([1, 2, 4, 5]);
    const attempts = await reader.attempts('org_a', message.id);
    expect(attempts[1]).toEqual({
      attemptNumber: 2,
      startedAtMs: 5,
      durationMs: 7,
      responseStatus: 503,
      responseBody: 'older body',
      errorType: 'http_error',
      errorMessage: 'older',
    });
  });

  test('a release without details reads the first six members of the long form, and the short form', () => {
    const { short, long } = encodeAttempt(failed('body'), 2);
    expect(JSON.parse(long).slice(0, 6)).toEqual([1, 5, 500, 'body', 'h', 'status 500']);
    expect(short).toBe('1 5 500 h body');
  });
});

describe('the bytes of details', () => {
  test('count to the organization while the message is unfinished, to its history afterwards, and no more once it is pruned', async () => {
    const message = await accept();
    const bare = await bytesOf('ub');
    for (let n = 1; n <= 6; n++) {
      await attempted(failed());
      const { message: ofMessage, event, stored } = await counted(message);
      expect([ofMessage, event]).toEqual([stored, stored]);
      expect(await bytesOf('ub')).toBe(bare + stored);
    }
    const before = await bytesOf('fb');
    await attempted(failed(), 'dead');
    const { stored } = await counted(message);
    expect(await bytesOf('ub')).toBe(0);
    expect((await bytesOf('fb')) - before).toBeGreaterThan(stored);
    await queue.prune({ finishedMs: 0, deadLettersMs: -1000 });
    expect(await redis.client.exists(keys.message(message.key), keys.attempts(message.key), `${base}ad`)).toBe(0);
    expect(await bytesOf('fb')).toBe(0);
  });

  test('an account that is above 60 % of its share keeps none, loses those of a message that fails again, and has them again once it has less', async () => {
    const message = await accept();
    await attempted(failed());
    await attempted(failed());
    await redis.client.hset(`${base}ctl`, 'lean', `100 org_b org_a`);
    await attempted(failed('answer 3'));
    expect(await kept(message.key)).toEqual([]);
    expect(await counted(message)).toEqual({ message: 0, event: 0, stored: 0 });
    expect((await reader.attempts('org_a', message.id)).map(({ responseBody }) => responseBody)).toEqual(['no', 'no', 'answer 3']);
    await redis.client.hset(`${base}ctl`, 'lean', `100 org_b`);
    await attempted(failed());
    expect(await kept(message.key)).toEqual([4]);
    await redis.client.hset(`${base}ctl`, 'lean', `1000000 org_a`);
    await attempted(failed());
    expect(await kept(message.key)).toEqual([4, 5]);
  });
});
