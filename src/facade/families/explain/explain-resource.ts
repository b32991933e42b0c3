import { kinds, type PosthornObject, type ServedKind, servedKinds } from '../../../resources/kinds.ts';
import type { Condition } from '../../../resources/metadata.ts';
import { referrersOf } from '../../../resources/references.ts';
import { authorize } from '../../http/authorization.ts';
import type { Call } from '../../http/operation.ts';
import { cachedReferrers, findToRead, idOf } from '../../records/lookup.ts';
import { nouns } from '../../records/nouns.ts';
import { foreignManagers } from '../../records/owned-spec.ts';
import { nameOf, timesOf } from '../../records/record-fields.ts';
import { collections, enableResource } from './enable.ts';
import { explainCronJob } from './explain-cron.ts';
import { explainReplay } from './explain-replay.ts';
import { type Advice, advise, counted, type Explanation, explained, happened, holds, type More, type Step } from './explanation.ts';
import { isA, trafficOf } from './traffic.ts';

/** Explains resources: conditions, referrers, field managers and traffic. */

const maxReferrers = 20;

/** The resource kind of the prefix of an id; undefined: none. */
export function kindOfId(id: string): ServedKind | undefined {
  return servedKinds.find((kind) => id.startsWith(kinds[kind].idPrefix));
}

/** RESOURCE_NOT_FOUND when the organization has none with this id; FORBIDDEN for an API key, unless the caller is an admin. */
export async function explainResource(call: Call, kind: ServedKind, id: string): Promise<Explanation> {
  authorize(call.caller, { scope: 'read', adminOnly: kind === 'ApiKey' });
  const object = await findToRead(call, kind, id);
  const more = await moreOf(call, object, id);
  const noun = nouns[kind];
  const state = stateOf(object);
  const own: Partial<More> = state === 'not_ready' ? {} : more;
  const { createdAt, updatedAt } = timesOf(object);
  const created = happened(Date.parse(createdAt), 'created', `The ${noun} ${object.metadata.name} was created.`);
  const changed = happened(Date.parse(updatedAt), 'changed', `The ${noun} was last changed.`);
  return explained({
    id,
    kind: noun,
    state: own.state ?? state,
    summary: own.summary ?? `The ${noun} "${nameOf(object)}" ${stateTexts[state]}.${reasonOf(object)}`,
    story: [
      created,
      ...(updatedAt === createdAt ? [] : [changed]),
      ...conditionsOf(object).map(conditionStep),
      ...referrerSteps(call, object),
      managerStep(object),
      ...more.steps,
    ],
    waitsFor: more.waitsFor ?? null,
    next: more.next ?? null,
    advice: [...adviceOn(object, id, state), ...(more.advice ?? [])],
  });
}

function moreOf(call: Call, object: PosthornObject<ServedKind>, id: string): Promise<More> {
  if (isA(object, 'HttpCronJob')) return explainCronJob(call, object, id);
  return isA(object, 'Replay') ? explainReplay(call, object, id) : trafficOf(call, object, id);
}

const stateTexts = {
  ready: 'is ready',
  not_ready: 'is not ready',
  unknown: 'has not been reconciled by the controller yet',
  disabled: 'is disabled',
} as const;

function conditionsOf({ status }: PosthornObject<ServedKind>): readonly Condition[] {
  return status?.conditions ?? [];
}

function readyOf(object: PosthornObject<ServedKind>): Condition | undefined {
  return conditionsOf(object).find(({ type }) => type === 'Ready');
}

function stateOf(object: PosthornObject<ServedKind>): keyof typeof stateTexts {
  const ready = readyOf(object);
  if (ready === undefined || ready.status === 'Unknown') return 'unknown';
  if (ready.status === 'False') return 'not_ready';
  return isDisabled(object) ? 'disabled' : 'ready';
}

function isDisabled({ spec }: PosthornObject<ServedKind>): boolean {
  return 'enabled' in spec && spec.enabled === false;
}

function reasonOf(object: PosthornObject<ServedKind>): string {
  const ready = readyOf(object);
  return ready?.status === 'False' ? ` ${ready.message}` : '';
}

function conditionStep({ type, status, reason, message, lastTransitionTime }: Condition): Step {
  const text = `${type} is ${status} (${reason})${message === '' ? '' : `: ${message}`}`;
  return happened(Date.parse(lastTransitionTime), 'condition', text, { type, status, reason, message });
}

function referrerSteps(call: Call, object: PosthornObject<ServedKind>): Step[] {
  const { kind, metadata } = object;
  const served = servedKinds.filter((each) => referrersOf(kind).includes(each));
  return served.flatMap((each) => {
    const all = cachedReferrers(call, each, { kind, metadata });
    if (all.length === 0) return [];
    const names = all.slice(0, maxReferrers).map((other) => ({ id: idOf(other), name: other.metadata.name }));
    const shown = names.map(({ name }) => name).join(', ');
    const rest = all.length > names.length ? ` and ${all.length - names.length} more` : '';
    const text = `Used by: ${counted(all.length, nouns[each])} (${shown}${rest}).`;
    return [holds('used_by', text, { kind: nouns[each], total: all.length, names })];
  });
}

function managerStep({ metadata }: PosthornObject<ServedKind>): Step {
  const managers = foreignManagers(metadata.managedFields ?? []);
  if (managers.length === 0) return holds('managed', 'It is managed through the API.', { managers });
  return holds('managed', `Fields of it are managed by ${managers.join(', ')}: change these there, for example in Git.`, { managers });
}

function adviceOn(object: PosthornObject<ServedKind>, id: string, state: keyof typeof stateTexts): Advice[] {
  const path = `/${collections[object.kind]}/${id}`;
  switch (state) {
    case 'not_ready':
      return [
        object.kind === 'ApiKey'
          ? { text: 'Repair what the condition Ready names.' }
          : advise('Repair what the condition Ready names, then read it again.', 'GET', path),
      ];
    case 'disabled':
      return [enableResource(object.kind, id, object)];
    case 'unknown':
      return [{ text: 'Wait a few seconds. If it stays so, check that a controller leads.' }];
    case 'ready':
      return [];
  }
}
