import type { RedisClient } from '../../redis/connection.ts';

/** More rings at a time would find nothing, as in `includes/bounded-bell.lua`. */
const maxRings = 16;

/** Wakes a worker that sleeps on a list. */
export async function ringBell(redis: RedisClient, bell: string): Promise<void> {
  await redis.multi().rpush(bell, 1).ltrim(bell, -maxRings, -1).exec();
}
