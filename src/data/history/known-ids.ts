import { newest } from '../shard/cursor.ts';
import { maxGathered } from '../shard/index-pages.ts';
import type { ShardReader } from '../shard/shard-reader.ts';
import { packIndex } from './delivery-listing.ts';
import { deliveryView, eventView } from './message-view.ts';

/** Steps of a search for a result of a route. */
const maxSteps = 20;

/** Whether the organization has events or deliveries of what has, or had, the id. */
export async function hasHistory(
  shards: readonly ShardReader[],
  { org, id, of }: { org: string; id: string; of: 'events' | 'deliveries' },
): Promise<boolean> {
  const kind = of === 'events' ? 'e' : 'm';
  const isOwn = async (shard: ShardReader): Promise<boolean> => {
    const [entry] = await shard.entries(`i:${id}`, kind, { position: newest, fromMs: 0, count: 1 });
    if (entry === undefined || entry.reply === null)
      return of === 'deliveries' && id.startsWith('rte_') && (await hasResult(shard, org, id));
    const { view } = kind === 'e' ? eventView(shard.shard, entry.key, entry.reply) : deliveryView(shard.shard, entry.key, entry.reply);
    return view.org === org;
  };
  return (await Promise.all(shards.map(isOwn))).includes(true);
}

/** Whether an event has not met the filter of the route, among the newest events of the organization. */
async function hasResult(shard: ShardReader, org: string, routeId: string): Promise<boolean> {
  let position = newest;
  for (let step = 0; step < maxSteps; step++) {
    const { entries, last } = await shard.scan(packIndex(org), 'm', { position, fromMs: 0, count: 1, looks: maxGathered, routeId });
    if (entries.length > 0) return true;
    if (last === null) return false;
    position = { ...last, shard: shard.shard };
  }
  return false;
}
