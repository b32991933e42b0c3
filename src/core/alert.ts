import { z } from 'zod';
import { parsePlainJson } from './plain-json.ts';

/** The content of an alert; also the body for a channel of type webhook. Times are ISO 8601. */
export const alertSchema = z.object({
  type: z.enum(['delivery.failed', 'delivery.succeeded', 'route.recovered', 'circuit.opened', 'circuit.closed']),
  organizationId: z.string(),
  route: z.object({ id: z.string(), name: z.string() }),
  destination: z.object({ id: z.string(), name: z.string() }),
  circuitState: z.enum(['closed', 'open', 'half_open']),
  /** The event of the last message; null for circuits, and where the message is gone. */
  event: z.object({ id: z.string(), receivedAt: z.string() }).nullable(),
  attempts: z.int().nullable(),
  responseStatus: z.int().nullable(),
  errorMessage: z.string().nullable(),
  /** Number of messages or transitions in it. */
  count: z.int(),
  firstAt: z.string(),
  lastAt: z.string(),
  /** A test of the channel: nothing has happened. */
  test: z.literal(true).optional(),
});
export type Alert = z.infer<typeof alertSchema>;
export type AlertType = Alert['type'];

/** One without a message as its cause, about something that represents the route and its destination. */
export function alertWithoutMessage(
  type: AlertType,
  { organizationId, about, atMs }: { organizationId: string; about: { id: string; name: string }; atMs: number },
): Alert {
  const at = new Date(atMs).toISOString();
  return {
    type,
    organizationId,
    route: about,
    destination: about,
    circuitState: 'closed',
    event: null,
    attempts: null,
    responseStatus: null,
    errorMessage: null,
    count: 1,
    firstAt: at,
    lastAt: at,
  };
}

/** Null when the text is no alert. */
export function parseAlert(json: string): Alert | null {
  try {
    return alertSchema.parse(parsePlainJson(json));
  } catch {
    return null;
  }
}

const mark = '~';
const mailPrefix = 'mail_';
const closingPrefix = 'closed_';

/**
 * Alerts are messages of an organization of their own beside the real one, so that they appear in none of its lists, counters and
 * quotas, and are scheduled with it. Their targets have no alerts.
 */
export function alertOrganization(org: string): string {
  return mark + org;
}

/** The real organization behind one for alerts; null for a real one. */
export function organizationBehind(org: string): string | null {
  return org.startsWith(mark) ? org.slice(mark.length) : null;
}

/** Header of the event of an alert: the key, sealed, by which an incident is closed. */
export const routingKeyHeader = 'routing-key';

/** The target of a channel, or of the addresses of a route. */
export interface AlertTarget {
  routeId: string;
  destinationId: string;
}

export function channelTarget(channelId: string): AlertTarget {
  return { routeId: mark + channelId, destinationId: channelId };
}

export function mailTarget(routeId: string): AlertTarget {
  return { routeId: mark + routeId, destinationId: mailPrefix + routeId };
}

/** Where incidents are closed that a channel of PagerDuty has open, which may be gone itself. */
export function closingTarget(channelId: string): AlertTarget {
  return { routeId: mark + channelId, destinationId: closingPrefix + channelId };
}

/** The channel or the route of a part of an alert target; of any other target the part itself. */
export function behindAlertTarget(id: string): string {
  return id.replace(/^(?:~|mail_|closed_)/, '');
}

/** The channel whose incidents a target closes; null when it is another one. */
export function channelOfClosingTarget(destinationId: string): string | null {
  return destinationId.startsWith(closingPrefix) ? destinationId.slice(closingPrefix.length) : null;
}

/** The route whose addresses are the target; null when it is a channel. */
export function routeOfMailTarget(destinationId: string): string | null {
  return destinationId.startsWith(mailPrefix) ? destinationId.slice(mailPrefix.length) : null;
}

/** Attempts of an alert at a channel: at once, then after 5 s, 20 s, 80 s, 5 min, 10 min and 10 min. */
export const alertRetryPolicy = { maxRetries: 6, initialDelayMs: 5000, maxDelayMs: 600_000, backoffMultiplier: 4 };

/** Where alerts of channels of the type pagerduty go. */
export const pagerdutyUrl = 'https://events.pagerduty.com/v2/enqueue';
