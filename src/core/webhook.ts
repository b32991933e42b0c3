const mark = '+';

/**
 * Messages to webhook endpoints are those of an organization of their own beside the real one, as alerts are (`alert.ts`): they
 * appear in none of its lists and counters, and are scheduled with it. A target is an application (as route) and an endpoint (as
 * destination); the source of an event is its event type.
 */
export function webhookOrganization(org: string): string {
  return mark + org;
}

/** Under what the messages to all endpoints of an application are counted (`data/shard/includes/count.lua`). */
export function applicationTotals(applicationId: string): string {
  return `total:${applicationId}`;
}

/** The real organization behind one for webhooks; null for any other. */
export function organizationOfWebhooks(org: string): string | null {
  return org.startsWith(mark) ? org.slice(mark.length) : null;
}

/** Delays between the attempts of a webhook message: at once, then these. */
export const defaultWebhookRetryDelaysMs: readonly number[] = [5, 300, 1800, 7200, 18_000, 36_000, 36_000].map((seconds) => seconds * 1000);
