import { checkShards } from '../data/check/shard-check.ts';
import { checkWebhooks } from '../data/check/webhook-check.ts';
import { agreeOnShards } from '../data/membership/shard-count.ts';
import type { Config } from './config.ts';
import { withRedis } from './with-redis.ts';

/**
 * Walks the messages of all shards and the webhook stores and writes what is not as it must be, a line each, then a line of figures for each. Returns the exit
 * code: 0 when all is well, 1 when not. Throws UNAVAILABLE when Redis does not answer (the program then exits with 2).
 */
export async function check(config: Config, write: (line: string) => void): Promise<number> {
  const { redisKeyPrefix: prefix } = config;
  return await withRedis(config, { name: 'posthorn-check' }, async (redis) => {
    const shards = Math.max(1, await agreeOnShards({ redis, prefix, known: 0 }));
    const { messages, unfinished, findings } = await checkShards({ redis, prefix, shards });
    const webhooks = await checkWebhooks({ redis, prefix });
    for (const { id, complaint } of [...findings, ...webhooks.findings]) write(`${id} ${complaint}`);
    const { applications, endpoints, subscriptions } = webhooks;
    write(
      `webhooks: ${applications} applications, ${endpoints} endpoints, ${subscriptions} subscriptions, ${webhooks.findings.length} findings`,
    );
    write(`shards ${shards}: ${messages} messages, ${unfinished} unfinished, ${findings.length} findings`);
    return findings.length + webhooks.findings.length === 0 ? 0 : 1;
  });
}
