import type { PageQuery, ViewPage } from '../../src/data/shard/messages.ts';
import type { CandidatePage, WebhookCandidate, WebhookCandidates } from '../../src/data/webhooks/webhook-candidates.ts';
import type { NewWebhookEndpoint } from '../../src/data/webhooks/webhooks.ts';

/** What an endpoint in a test is made with. */
export function newWebhookEndpoint(applicationId: string, more: Partial<NewWebhookEndpoint> = {}): NewWebhookEndpoint {
  return {
    org: 'org_a',
    applicationId,
    url: 'https://customer.example/hooks',
    sealSecret: (id) => ({ sealed: `sealed for ${id}`, prefix: 'whsec_abcd', version: 1, previous: [] }),
    ...more,
  };
}

/** All members of a list, page by page. */
export async function allPages<T>(list: (page: PageQuery) => Promise<ViewPage<T>>, limit: number): Promise<T[]> {
  const all: T[] = [];
  let cursor: string | null | undefined;
  while (cursor !== null) {
    const page = await list({ limit, ...(cursor === undefined ? {} : { cursor }) });
    all.push(...page.items);
    cursor = page.nextCursor;
  }
  return all;
}

/** Those of an event type, read so many places at a time. */
export async function allCandidates(
  candidates: WebhookCandidates,
  org: string,
  eventTypeId: string,
  places = 100,
): Promise<WebhookCandidate[]> {
  const all: WebhookCandidate[] = [];
  for (let from: number | null = 0; from !== null; ) {
    const page: CandidatePage = await candidates.ofEventType(org, eventTypeId, from, places);
    all.push(...page.candidates);
    from = page.next;
  }
  return all;
}
