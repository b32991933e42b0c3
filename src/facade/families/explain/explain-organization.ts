import { webhookOrganization } from '../../../core/webhook.ts';
import type { OrganizationStatistics } from '../../../data/analytics/statistics.ts';
import type { Call } from '../../http/operation.ts';
import { type Advice, advise, counted, type Explanation, explained, holds, type Step } from './explanation.ts';
import { monthOfOrganization } from './month.ts';

/** One of the two kinds of messages that an organization has. */
interface Traffic {
  what: 'deliveries' | 'messages';
  one: string;
  failedPath: string;
  statistics: OrganizationStatistics;
}

/** The organization of the caller. Null for the id of another one. */
export async function explainOrganization(call: Call, id: string): Promise<Explanation | null> {
  const { services, caller } = call;
  const { slug, plan } = caller.organization;
  if (id !== caller.organization.id) return null;
  const [month, ofRoutes, ofEndpoints] = await Promise.all([
    monthOfOrganization(call),
    services.statistics.ofOrganization(id, '1h'),
    services.statistics.ofOrganization(webhookOrganization(id), '1h'),
  ]);
  const traffic: Traffic[] = [
    { what: 'deliveries', one: 'delivery', failedPath: '/deliveries?status=dlq,retrying', statistics: ofRoutes },
    { what: 'messages', one: 'message', failedPath: '/outbound-messages?status=dlq,failed', statistics: ofEndpoints },
  ];
  const waiting = traffic.reduce((sum, { statistics }) => sum + waitingOf(statistics), 0);
  const failed = traffic.reduce((sum, { statistics }) => sum + statistics.total.failed, 0);
  return explained({
    id,
    kind: 'organization',
    state: 'ready',
    summary: `The organization "${slug}" has the plan ${plan}. Deliveries and messages not ended: ${waiting}, failed in the last hour: ${failed}.`,
    story: [...(month === null ? [] : [month.step]), ...traffic.flatMap(stepsOf)],
    advice: [...(month?.advice ?? []), ...traffic.flatMap(adviceOn)],
  });
}

function waitingOf({ targets }: OrganizationStatistics): number {
  return targets.reduce((sum, { fresh, retries }) => sum + fresh + retries, 0);
}

function circuitsOf({ targets }: OrganizationStatistics): number {
  return targets.filter(({ circuit }) => circuit !== 'closed').length;
}

function stepsOf({ what, one, statistics }: Traffic): Step[] {
  const { delivered, failed } = statistics.total;
  const retries = statistics.targets.reduce((sum, each) => sum + each.retries, 0);
  const waiting = waitingOf(statistics);
  const circuits = circuitsOf(statistics);
  return [
    holds(what, `In the last hour ${counted(delivered, one, what)} arrived, and ${counted(failed, one, what)} failed for good.`, {
      delivered,
      failed,
    }),
    holds('backlog', `Of ${what}, ${waiting} have not ended, ${retries} of them after a failed attempt.`, { waiting, retries }),
    holds('circuit', `Of circuits of ${what}, ${circuits} are not closed.`, { notClosed: circuits }),
  ];
}

function adviceOn({ what, failedPath, statistics }: Traffic): Advice[] {
  const hasFailed = statistics.total.failed > 0 || circuitsOf(statistics) > 0 || statistics.targets.some(({ retries }) => retries > 0);
  return hasFailed ? [advise(`Read which ${what} have failed.`, 'GET', failedPath)] : [];
}
