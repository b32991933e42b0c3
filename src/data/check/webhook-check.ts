import type { RedisClient } from '../../redis/connection.ts';
import { throwUnavailable } from '../../redis/unavailable.ts';
import { registryKeys } from '../registry/registry-keys.ts';
import { integer, list, text } from '../shard/script-reply.ts';
import { WebhookScripts } from '../webhooks/webhook-scripts.ts';
import type { Finding } from './shard-check.ts';

export interface WebhookCheckReport {
  applications: number;
  endpoints: number;
  subscriptions: number;
  findings: Finding[];
}

const entriesPerStep = 50;
/** Hashes that are walked, and what an entry of each is called. */
const hashes = {
  ap: 'application',
  ep: 'endpoint',
  sb: 'subscription',
  es: 'endpoint',
  ls: 'list',
  ax: 'external id',
  ids: 'id',
  an: 'name',
} as const;

/**
 * Proves that the webhook stores of all organizations hold together: whatever is below something that is there or is being removed, is in its
 * lists, and they list and count nothing else. Reads only, step by step, while others write. Throws UNAVAILABLE when Redis does not answer.
 */
export async function checkWebhooks({ redis, prefix }: { redis: RedisClient; prefix: string }): Promise<WebhookCheckReport> {
  const scripts = new WebhookScripts({ redis, prefix });
  const looked = { ap: 0, ep: 0, sb: 0, es: 0, ls: 0, ax: 0, ids: 0, an: 0 };
  const findings: Finding[] = [];
  for (const org of await redis.hkeys(registryKeys(prefix).records('organization')).catch(throwUnavailable)) {
    for (const hash of Object.keys(hashes) as (keyof typeof hashes)[]) {
      let cursor = '0';
      do {
        const [next, count, complaints] = list(await scripts.run('check', org, [hash, cursor, entriesPerStep]));
        const flat = list(complaints).map(text);
        for (let i = 0; i + 1 < flat.length; i += 2)
          findings.push({ id: `${org} webhook ${hashes[hash]} ${flat[i]}`, complaint: flat[i + 1] ?? '' });
        looked[hash] += integer(count);
        cursor = text(next);
      } while (cursor !== '0');
    }
  }
  return { applications: looked.ap, endpoints: looked.ep, subscriptions: looked.sb, findings };
}
