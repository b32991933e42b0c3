import type { RedisClient } from '../../src/redis/connection.ts';

/** When its process dies: before the command is sent, or when its answer is lost. */
export type CrashMoment = 'before' | 'after';

/** A client whose process dies at its `nth` command. `count` returns how many were sent; `death` resolves once it has died. */
export function crashingClient(
  redis: RedisClient,
  nth: number,
  moment: CrashMoment,
): { client: RedisClient; count: () => number; death: Promise<void> } {
  let count = 0;
  const { promise: death, resolve: die } = Promise.withResolvers<void>();
  const never = new Promise<never>(() => {});
  const isDead = (): boolean => count > nth || (count === nth && moment === 'before');
  const client = new Proxy(redis, {
    get(target, name) {
      const member = Reflect.get(target, name);
      if (typeof member !== 'function') return member;
      return (...args: unknown[]) => {
        count++;
        const isLast = count === nth;
        if (isLast) die();
        if (isDead()) return never;
        const answer = member.apply(target, args);
        return isLast ? Promise.resolve(answer).then(() => never) : answer;
      };
    },
  });
  return { client, count: () => count, death };
}

/**
 * Does `work` in the world that `prepare` makes, with a process that dies at each of its commands in turn, and checks what is left each time. `prepare`
 * begins on an empty Redis of its own.
 */
export async function crashAtEveryCommand<T>(
  redis: RedisClient,
  moment: CrashMoment,
  { prepare, work, look }: { prepare(): Promise<T>; work(client: RedisClient, world: T): Promise<unknown>; look(world: T): Promise<void> },
): Promise<void> {
  // Scripts that are not loaded in Redis yet are commands more.
  await work(redis, await prepare());
  const whole = crashingClient(redis, Number.POSITIVE_INFINITY, moment);
  await work(whole.client, await prepare());
  for (let nth = 1; nth <= whole.count(); nth++) {
    const world = await prepare();
    const { client, count, death } = crashingClient(redis, nth, moment);
    const survived = work(client, world).then(() => {
      throw new Error(`${count()} of ${nth} commands were sent`);
    });
    await Promise.race([death, survived]);
    // Comes after what was sent.
    await redis.ping();
    await look(world);
  }
}
