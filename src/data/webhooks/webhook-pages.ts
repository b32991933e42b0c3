import { setTimeout as pause } from 'node:timers/promises';
import { PosthornError } from '../../core/errors.ts';
import { namedArgument } from '../../redis/script.ts';
import { cursorOf, cursorText } from '../shard/cursor.ts';
import { longestFillMs, longestPauseMs, unpacedMs } from '../shard/index-pages.ts';
import type { PageQuery, ViewPage } from '../shard/messages.ts';
import { integer, list, text } from '../shard/script-reply.ts';
import { idParts, type KindOfWebhooks } from './webhook-kinds.ts';
import type { WebhookScripts } from './webhook-scripts.ts';

const maxPerPage = 100;
/** Rows of one script call where not every one is wanted, and members that it looks at. */
const rowsPerCall = 200;
const lookedAtPerCall = 500;

/** A list as `webhook-list.lua` walks it. */
export interface WebhookListing<T> {
  kind: KindOfWebhooks<T>;
  what: 'ap' | 'ep' | 'sb' | 'an' | 'a' | 't' | 'e' | 's';
  isUpwards?: boolean;
  /** Parent of the members: the id of an application, endpoint or event type. */
  above?: string;
  /** Further filter of the list; absent: none. */
  isWanted?(object: T): boolean;
  /** Tells it from every other list of the organization: a cursor is of use with it alone. */
  scope: readonly unknown[];
}

/** Throws INVALID_QUERY for a cursor of another list. */
export async function webhookPage<T>(
  scripts: WebhookScripts,
  org: string,
  { kind, what, isUpwards = false, above, isWanted, scope: scopeParts }: WebhookListing<T>,
  { limit, cursor }: PageQuery,
): Promise<ViewPage<T>> {
  if (limit < 1 || limit > maxPerPage) throw new PosthornError('INVALID_QUERY', `limit must be between 1 and ${maxPerPage}`);
  const scope = JSON.stringify(['webhooks', org, kind.kind, ...scopeParts]);
  const owner = what === 't' ? { id: above } : idParts(what === 'e' ? 'endpoint' : 'application', above ?? '');
  let from = cursor === undefined ? '' : cursorText(cursor, scope);
  let pageEnd = from;
  const items: T[] = [];
  const beganMs = performance.now();
  while (performance.now() - beganMs < longestFillMs) {
    const askedMs = performance.now();
    const most = isWanted === undefined ? limit - items.length + 1 : rowsPerCall;
    const wanted = namedArgument({ what, step: isUpwards ? 1 : -1, after: from, maxRows: most, maxLooks: lookedAtPerCall, above: owner });
    const [rows, next] = list(await scripts.run('list', org, [wanted]));
    for (const [position, ...row] of chunksOf(list(rows), kind.rowLength + 1)) {
      const { object } = kind.row(org, row);
      if (isWanted?.(object) === false) continue;
      if (items.length === limit) return { items, nextCursor: cursorOf(pageEnd, scope) };
      items.push(object);
      pageEnd = text(position);
    }
    from = text(next);
    if (from === '') return { items, nextCursor: null };
    if (askedMs - beganMs > unpacedMs) await pause(Math.min(longestPauseMs, performance.now() - askedMs));
  }
  return { items, nextCursor: cursorOf(items.length === limit ? pageEnd : from, scope) };
}

/** Rows that stand one after the other. */
export function chunksOf(flat: readonly unknown[], length: number): unknown[][] {
  return Array.from({ length: Math.floor(flat.length / length) }, (_, i) => flat.slice(i * length, (i + 1) * length));
}

/** How many are below each object; `what` as in `webhook-count.lua`. Of what is not there: 0. */
export async function webhookCounts(
  scripts: WebhookScripts,
  org: string,
  what: 'a' | 't' | 'e',
  ids: readonly string[],
): Promise<Map<string, number>> {
  const named = ids.map((id) => (what === 't' ? { id } : idParts(what === 'a' ? 'application' : 'endpoint', id)));
  const counts = ids.length === 0 ? [] : list(await scripts.run('count', org, [namedArgument({ what, ids: named })]));
  return new Map(ids.map((id, i) => [id, integer(counts[i] ?? 0)]));
}
