import type { Alert } from '../../../core/alert.ts';
import type { ChannelRecord } from '../../../core/records.ts';
import { alertWording, cut } from './alert-wording.ts';

/** PagerDuty, "Events API v2". */
const longestSummary = 1024;

/**
 * One event: `trigger` while something of the route is broken, else `resolve`. All events of a route belong to one incident. What was
 * coalesced can come after the recovery; it must not open the incident again.
 */
export function pagerdutyEvent(
  alert: Alert,
  {
    routingKey,
    severity,
    isBroken,
  }: { routingKey: string; severity: (ChannelRecord & { type: 'pagerduty' })['severity']; isBroken: boolean },
): object {
  const incident = { routing_key: routingKey, event_action: isBroken ? 'trigger' : 'resolve', dedup_key: alert.route.id };
  if (!isBroken) return incident;
  const { title, summary } = alertWording(alert);
  return {
    ...incident,
    client: 'Posthorn',
    payload: {
      summary: cut(`${title}: ${summary}`, longestSummary),
      source: alert.route.id,
      severity,
      timestamp: alert.lastAt,
      component: alert.destination.id,
      group: alert.organizationId,
      class: alert.type,
      custom_details: alert,
    },
  };
}
