import { startRedis } from '../../../test/support/redis.ts';
import { withAof } from './redis-options.ts';
import { perSecond } from './report.ts';
import { payloadBytes, Sender } from './traffic.ts';

/** What this machine can do at this time, with nothing of Posthorn between. */
export interface Ceilings {
  /** Requests a second of a bare undici loop against a bare receiver. */
  undici: number;
  /** XADDs a second in bare pipelines. */
  redis: number;
}

const batch = 100;
const forMs = 1000;

/** `origin`: of a receiver, which is reset; `place`: puts the Redis where the measured one is. */
export async function measureCeilings(origin: string, count: number, senders: number, place?: Place): Promise<Ceilings> {
  return { undici: await bareUndiciLoop(origin, count, senders), redis: await bareRedisPipeline(place) };
}

/** Moves a process, given by its id. */
export type Place = (processId: number) => void;

export function ceilingRows({ undici, redis }: Ceilings): [string, string][] {
  return [['bare undici loop', perSecond(undici)], redisCeilingRow(redis)];
}

export function redisCeilingRow(redis: number): [string, string] {
  return ['bare Redis pipeline', perSecond(redis)];
}

async function bareUndiciLoop(origin: string, count: number, senders: number): Promise<number> {
  const sender = new Sender(origin, senders);
  await sender.closedLoop('/', 2000, senders);
  const { seconds } = await sender.closedLoop('/', count, senders);
  await sender.close();
  return count / seconds;
}

/**
 * For a second: XADDs of a payload, in pipelines one after the other. In a Redis of its own, with AOF everysec: the tens of megabytes that it writes would let
 * the measured one rewrite its AOF.
 */
export async function bareRedisPipeline(place: Place = () => {}): Promise<number> {
  const redis = await startRedis(withAof);
  const payload = Buffer.alloc(payloadBytes, 'x');
  try {
    place(redis.pid);
    let added = 0;
    const begin = performance.now();
    while (performance.now() - begin < forMs) {
      const pipeline = redis.client.pipeline();
      for (let i = 0; i < batch; i++) pipeline.xadd('bare-pipeline', '*', 'payload', payload);
      await pipeline.exec();
      added += batch;
    }
    return added / ((performance.now() - begin) / 1000);
  } finally {
    await redis.stop();
  }
}
