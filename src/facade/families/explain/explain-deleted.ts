import { applicationTotals, webhookOrganization } from '../../../core/webhook.ts';
import { skippedCount } from '../../../data/replays/replay-run.ts';
import type { Call } from '../../http/operation.ts';
import { type DeletableKind, deletedNameOf, mayHaveHistory, wasDeleted } from '../../records/deleted-ids.ts';
import { type FilterKind, hasHistory, shownAs } from '../../records/filter-ids.ts';
import { nouns } from '../../records/nouns.ts';
import { isoTimeOrNull } from '../../records/record-fields.ts';
import { type Advice, advise, atTime, counted, type Explanation, explained, holds, type Step } from './explanation.ts';

/** The explanation of something that was deleted. */
interface Past {
  /** Null where history does not have it. */
  name: string | null;
  steps: Step[];
}

/** Null if no trace shows that the organization had it. The caller has searched for it. */
export async function explainDeleted(call: Call, kind: DeletableKind, id: string): Promise<Explanation | null> {
  if (!(await wasDeleted(call, kind, id))) return null;
  const noun = kind === 'WebhookApplication' || kind === 'WebhookEndpoint' ? shownAs[kind] : nouns[kind];
  const [{ name, steps }, history] = await Promise.all([
    pastOf(call, kind, id),
    mayHaveHistory(kind) ? historyOf(call, kind, id) : { steps: [], advice: [] },
  ]);
  return explained({
    id,
    kind: noun,
    state: 'deleted',
    summary: `The ${noun}${name === null ? '' : ` "${name}"`} was deleted.`,
    story: [
      holds('deleted', name === null ? 'Its name is not kept.' : `Its last known name is "${name}".`, { name }),
      ...steps,
      ...history.steps,
    ],
    advice: history.advice,
  });
}

async function pastOf(call: Call, kind: DeletableKind, id: string): Promise<Past> {
  const { id: org } = call.caller.organization;
  switch (kind) {
    case 'Source':
      return { name: await sourceNameIn(call, org, id), steps: [await eventsStep(call, id, 'received')] };
    case 'Route':
      return { name: null, steps: [await eventsStep(call, id, 'taken')] };
    case 'Destination':
      return { name: null, steps: [await deliveriesStep(call, org, id, 'deliveries')] };
    case 'WebhookEventType':
      return { name: await sourceNameIn(call, webhookOrganization(org), id), steps: [] };
    case 'WebhookApplication':
      return { name: await deletedNameOf(call, kind, id), steps: [await messagesStep(call, applicationTotals(id))] };
    case 'WebhookEndpoint':
      return { name: await deletedNameOf(call, kind, id), steps: [await messagesStep(call, id)] };
    case 'Replay':
      return await pastReplay(call, id);
    default:
      return { name: null, steps: [] };
  }
}

/** The name that the newest event has of its source, or of its event type; null without an event. */
async function sourceNameIn({ services }: Call, org: string, id: string): Promise<string | null> {
  const [event] = (await services.messages.events(org, { sourceId: id }, { limit: 1 })).items;
  return event?.source ?? null;
}

/** Counters of what is deleted are removed once a day. */
const notCounted = 'are not counted any more, or there were none';

async function eventsStep({ services, caller }: Call, id: string, verb: 'received' | 'taken'): Promise<Step> {
  const { events, lastEventAtMs } = await services.messages.eventCounters(caller.organization.id, id);
  const text =
    events === 0
      ? `The events that it has ${verb} ${notCounted}.`
      : `It has ${verb} ${counted(events, 'event')}, the last one${atTime(lastEventAtMs)}.`;
  return holds('events', text, { events: events === 0 ? null : events, lastEventAt: isoTimeOrNull(lastEventAtMs) });
}

function messagesStep(call: Call, countedAs: string): Promise<Step> {
  return deliveriesStep(call, webhookOrganization(call.caller.organization.id), countedAs, 'messages');
}

async function deliveriesStep({ services }: Call, org: string, id: string, what: 'deliveries' | 'messages'): Promise<Step> {
  const { deliveries, successes, lastDeliveryAtMs } = await services.messages.destinationCounters(org, id);
  const isCounted = deliveries > 0;
  const text = isCounted
    ? `Ended ${what} to it: ${deliveries}, with success: ${successes}, the last one${atTime(lastDeliveryAtMs)}.`
    : `The ended ${what} to it ${notCounted}.`;
  const data = { deliveries: isCounted ? deliveries : null, successes: isCounted ? successes : null };
  return holds(what, text, { ...data, lastDeliveryAt: isoTimeOrNull(lastDeliveryAtMs) });
}

async function pastReplay({ services, caller }: Call, id: string): Promise<Past> {
  const run = (await services.replayRuns.runs(caller.organization.id)).find((each) => each.id === id);
  if (run === undefined) return { name: null, steps: [] };
  const { phase, queued, delivered, failed, endedOtherwise } = run;
  const skipped = skippedCount(run.skipped);
  const text = `Its last phase was ${phase}. Queued: ${queued}, skipped: ${skipped}, delivered: ${delivered}, failed: ${failed}.`;
  return { name: run.name, steps: [holds('progress', text, { phase, queued, skipped, delivered, failed, endedOtherwise })] };
}

type KindWithHistory = Extract<DeletableKind, FilterKind>;

/** Lists that still take the id. */
const lists: Readonly<Partial<Record<KindWithHistory, string>>> = {
  Source: '/events?sourceId=',
  Route: '/deliveries?routeId=',
  Destination: '/deliveries?destinationId=',
  WebhookApplication: '/outbound-messages?applicationId=',
  WebhookEndpoint: '/outbound-messages?endpointId=',
};

async function historyOf(call: Call, kind: KindWithHistory, id: string): Promise<{ steps: Step[]; advice: Advice[] }> {
  const isKept = await hasHistory(call, kind, id);
  const what = kind === 'Source' || kind === 'WebhookEventType' ? 'events' : kind.startsWith('Webhook') ? 'messages' : 'deliveries';
  const text = isKept ? `Some of its ${what} are still kept.` : `None of its ${what} is kept any more.`;
  const list = lists[kind];
  return {
    steps: [holds('history', text, { isKept })],
    advice: isKept && list !== undefined ? [advise(`Read its ${what}.`, 'GET', `${list}${id}`)] : [],
  };
}
