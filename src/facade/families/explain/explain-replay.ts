import type { ReplayWait } from '../../../data/replays/replay-run.ts';
import type { PosthornObject } from '../../../resources/kinds.ts';
import type { Call } from '../../http/operation.ts';
import { idOf, inCache } from '../../records/lookup.ts';
import { foreignOwners } from '../../records/owned-spec.ts';
import { nameOf } from '../../records/record-fields.ts';
import { type Progress, progressOf } from '../replays/replay-records.ts';
import { enableEndpoint, enableResource } from './enable.ts';
import { type Advice, advise, counted, happened, holds, type More, type Step } from './explanation.ts';
import { adviceOnWait } from './wait-advice.ts';

/** Replays: what they do, how far they are, what they wait for. */

type Replay = PosthornObject<'Replay'>;

export async function explainReplay(call: Call, replay: Replay, id: string): Promise<More> {
  const [progress] = await progressOf([replay], call);
  if (progress === undefined) throw new Error('a replay has no progress');
  const { phase, waiting } = progress;
  return {
    state: phase,
    summary: `The replay "${nameOf(replay)}" ${texts[phase]}. ${doneSoFar(replay, progress)}`,
    steps: stepsOf(replay, progress),
    waitsFor: waiting === null ? null : { reason: waiting.reason, until: null, text: waiting.message },
    advice: await adviceOn(call, { replay, id, progress }),
  };
}

const texts: Record<Progress['phase'], string> = {
  Planning: 'is being planned',
  Running: 'is under way',
  Suspended: 'is suspended',
  Succeeded: 'has succeeded',
  Failed: 'has failed',
  Cancelled: 'was cancelled',
};

function doneSoFar({ spec: { dryRun } }: Replay, { plan, queued, skipped, delivered, failed }: Progress): string {
  if (dryRun) return `It is a dry run, which sends nothing; ${found(plan)}.`;
  return `Of ${plan === null ? 'what it selects' : candidates(plan)}, ${counted(queued, 'message')} were queued and ${counted(skipped, 'original')} skipped; ${delivered} were delivered and ${failed} failed.`;
}

function found(plan: Progress['plan']): string {
  return plan === null ? 'it has found nothing yet' : `it has found ${candidates(plan)}`;
}

function candidates({ candidates: count, isEstimate }: NonNullable<Progress['plan']>): string {
  return `${isEstimate ? 'at least ' : ''}${counted(count, 'original')}`;
}

function stepsOf({ spec: { what, ratePerSecond } }: Replay, progress: Progress): Step[] {
  const { plan, queued, skipped, skippedByReason, delivered, failed, waiting, failure, alreadyRan } = progress;
  const { startedAt, completedAt, estimatedCompletionAt } = progress;
  return [
    holds('selects', `It sends ${what} again, at most ${ratePerSecond} in a second.`, { what, ratePerSecond }),
    ...(startedAt === null ? [] : [happened(Date.parse(startedAt), 'started', 'A worker began to plan it.')]),
    ...(plan === null ? [] : [holds('plan', `The plan has found ${candidates(plan)} for ${counted(plan.targets, 'target')}.`, plan)]),
    holds('progress', `Queued: ${queued}, skipped: ${skipped}, delivered: ${delivered}, failed: ${failed}.`, {
      queued,
      skipped,
      skippedByReason,
      delivered,
      failed,
      estimatedCompletionAt,
    }),
    ...(waiting === null ? [] : [happened(Date.parse(waiting.since), 'waiting', waiting.message, { reason: waiting.reason })]),
    ...(failure === null ? [] : [holds('failure', failure.message, { reason: failure.reason })]),
    ...(alreadyRan ? [holds('already_ran', 'An equal replay of this name ran before: this one shows its outcome, and does not run.')] : []),
    ...(completedAt === null ? [] : [happened(Date.parse(completedAt), 'completed', 'It ended.')]),
  ];
}

interface Known {
  replay: Replay;
  id: string;
  progress: Progress;
}

async function adviceOn(call: Call, { replay, id, progress }: Known): Promise<Advice[]> {
  const { phase, waiting, failure, alreadyRan } = progress;
  const { dryRun } = replay.spec;
  if (alreadyRan) return [{ text: 'Create a replay under another name to send them once more.' }];
  switch (phase) {
    case 'Suspended':
      return [change(replay, id, 'suspend', false), change(replay, id, 'cancel', true)];
    case 'Planning':
    case 'Running':
      return [
        ...(waiting === null ? [] : await adviceOnReplayWait(call, replay, waiting.reason as ReplayWait)),
        change(replay, id, 'suspend', true),
        change(replay, id, 'cancel', true),
      ];
    case 'Failed':
      return failure?.reason === 'TooManyFailures'
        ? [...read(call, replay), { text: 'Create another replay once the receivers are repaired.' }]
        : [{ text: 'Create another replay with a filter that is right.' }];
    case 'Succeeded':
      return dryRun ? [advise('Read its filter, and create the same replay without dryRun.', 'GET', `/replays/${id}`)] : [];
    case 'Cancelled':
      return [];
  }
}

const changes = {
  suspend: { true: 'Suspend the replay', false: 'Resume the replay' },
  cancel: { true: 'Cancel the replay; what is queued is delivered all the same' },
} as const;

function change(replay: Replay, id: string, field: 'suspend' | 'cancel', value: boolean): Advice {
  const text = field === 'cancel' ? changes.cancel.true : changes.suspend[`${value}`];
  const managers = foreignOwners(replay.metadata.managedFields ?? [], field);
  if (managers.length === 0) return advise(`${text}.`, 'PATCH', `/replays/${id}`, { [field]: value });
  return { text: `${text} where it is managed, for example in Git: by ${managers.join(', ')}.` };
}

/** The targets that the replay names. */
function namedIn(call: Call, { spec: { filter, destinationRef } }: Replay) {
  const { destinationRef: one, destinationRefs, routeRef, routeRefs, endpointId, endpointIds, applicationId, applicationIds } = filter;
  const given = <T>(value: T | undefined): T[] => (value === undefined ? [] : [value]);
  return {
    destinations: (destinationRef === undefined ? (destinationRefs ?? given(one)) : [destinationRef]).flatMap(
      ({ name }) => inCache(call, 'Destination', name) ?? [],
    ),
    routes: (routeRefs ?? given(routeRef)).flatMap(({ name }) => inCache(call, 'Route', name) ?? []),
    endpointIds: endpointIds ?? given(endpointId),
    applicationIds: applicationIds ?? given(applicationId),
  };
}

function read(call: Call, replay: Replay): Advice[] {
  const { destinations, routes, endpointIds, applicationIds } = namedIn(call, replay);
  const lists = [destinations.map(idOf), routes.map(idOf), endpointIds, applicationIds];
  const ids = lists.find((each) => each.length > 0) ?? [];
  return ids.map((id) => advise('Read the explanation of its target for the cause.', 'GET', `/explain/${id}`));
}

async function adviceOnReplayWait(call: Call, replay: Replay, reason: ReplayWait): Promise<Advice[]> {
  const { destinations, routes, endpointIds } = namedIn(call, replay);
  switch (reason) {
    case 'TargetDisabled': {
      const { webhooks } = call.services;
      const org = call.caller.organization.id;
      const endpoints = await Promise.all(endpointIds.map((id) => webhooks.endpoint(org, id)));
      const disabled = [
        ...destinations.flatMap((each) => (each.spec.enabled ? [] : [enableResource('Destination', idOf(each), each)])),
        ...routes.flatMap((each) => (each.spec.enabled ? [] : [enableResource('Route', idOf(each), each)])),
        ...endpoints.flatMap((each) => (each?.isDisabled === true ? [enableEndpoint(each)] : [])),
      ];
      return disabled.length > 0 ? disabled : read(call, replay);
    }
    case 'CircuitOpen': {
      const [destination, ...others] = destinations;
      const [route, ...otherRoutes] = routes;
      if (destination === undefined || route === undefined || others.length > 0 || otherRoutes.length > 0) return read(call, replay);
      return adviceOnWait(call, 'circuit_open', { routeId: idOf(route), destinationId: idOf(destination), isForWebhook: false });
    }
    case 'InFlightLimit':
    case 'TargetFull':
      return [{ text: 'Wait: it continues by itself as the receiver accepts queued messages.' }, ...read(call, replay)];
    case 'QuotaReached':
      return [{ text: 'Have the monthly messages of the organization raised, or wait for the next month in UTC: it continues by itself.' }];
    case 'QueueFull':
      return [{ text: 'Wait: it continues by itself once fewer messages of the organization are queued.' }];
    case 'RedisFull':
      return [{ text: 'Give Redis more memory, or wait until memory is free: it continues by itself.' }];
    case 'TooManyReplays':
      return [advise('Read which replays run; cancel one, or wait for the first to end.', 'GET', '/replays?phase=Running')];
  }
}
