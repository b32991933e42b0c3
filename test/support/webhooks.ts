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

/** Those of an event type, read so many entries at a time. */
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
