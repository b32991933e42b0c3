import { commandConnection } from '../../../src/redis/connection.ts';
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

/** `origin`: of a receiver, which is to forget what came; `redisUrl`: of the Redis that the bench uses. */
export async function measureCeilings(origin: string, redisUrl: string, count: number, senders: number): Promise<Ceilings> {
  return { undici: await bareUndiciLoop(origin, count, senders), redis: await bareRedisPipeline(redisUrl) };
}

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

/** For a second: XADDs of a payload, in pipelines one after the other on a connection of their own, to a key that is deleted after. */
export async function bareRedisPipeline(url: string): Promise<number> {
  const redis = commandConnection(url, { commandTimeoutMs: 60_000 });
  const key = 'bare-pipeline';
  const payload = Buffer.alloc(payloadBytes, 'x');
  await redis.connect();
  try {
    let added = 0;
    const begin = performance.now();
    while (performance.now() - begin < forMs) {
      const pipeline = redis.pipeline();
      for (let i = 0; i < batch; i++) pipeline.xadd(key, '*', 'payload', payload);
      await pipeline.exec();
      added += batch;
    }
    return added / ((performance.now() - begin) / 1000);
  } finally {
    await redis.del(key);
    redis.disconnect();
  }
}
