import { namedArgument } from '../../redis/script.ts';
import { list, text } from '../shard/script-reply.ts';
import { idParts } from './webhook-kinds.ts';
import type { WebhookScripts } from './webhook-scripts.ts';
import type { WebhookIds } from './webhooks.ts';

/** Longer than any message is kept. */
const longestHistoryMs = 45 * 86_400_000;

/** `RedisWebhookStore.deletedNames`, as `webhook-tombstones.lua` reads it. */
export async function deletedNames(
  scripts: WebhookScripts,
  org: string,
  { applications = [], endpoints = [] }: WebhookIds,
): Promise<Map<string, string>> {
  const read = async (kind: 'application' | 'endpoint', ids: readonly string[]): Promise<[string, string][]> => {
    const asked = { kind: kind === 'application' ? 'ap' : 'ep', ids: ids.map((id) => idParts(kind, id)) };
    const found = ids.length === 0 ? [] : list(await scripts.run('tombstones', org, [namedArgument(asked)])).map(text);
    return ids.flatMap((id, i): [string, string][] => (found[i] ? [[id, found[i]]] : []));
  };
  return new Map([...(await read('application', applications)), ...(await read('endpoint', endpoints))]);
}

/** `RedisWebhookStore.deletedEventTypeIds`. */
export async function deletedEventTypeIds(
  scripts: WebhookScripts,
  org: string,
  { name, nowMs }: { name: string; nowMs: number },
): Promise<string[] | null> {
  const [since = '', ...ids] = list(await scripts.run('tombstones', org, [namedArgument({ eventType: name })])).map(text);
  return since !== '' && (since === '0' || nowMs - Number(since) > longestHistoryMs) ? ids : null;
}
