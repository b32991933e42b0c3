import type { z } from 'zod';
import { canonicalJson } from '../core/canonical-json.ts';
import { replayedDeliveryStatuses, replayedEventStatuses, replayedMessageStatuses } from '../core/replay-statuses.ts';
import { canonicalValue } from './canonical-value.ts';
import type { Rule } from './definition.ts';
import { afterEpoch } from './fields.ts';
import { nanosecondsOf } from './text.ts';

const replayedStatuses = { deliveries: replayedDeliveryStatuses, messages: replayedMessageStatuses, events: replayedEventStatuses };
type What = keyof typeof replayedStatuses;

/** Fields of the filter that not everything has that can be replayed. */
const fieldsOf = {
  sourceRef: ['events'],
  sourceRefs: ['events'],
  routeRef: ['deliveries', 'events'],
  routeRefs: ['deliveries', 'events'],
  destinationRef: ['deliveries', 'events'],
  destinationRefs: ['deliveries', 'events'],
  applicationId: ['messages'],
  applicationIds: ['messages'],
  endpointId: ['messages'],
  endpointIds: ['messages'],
  eventType: ['messages'],
  eventTypes: ['messages'],
  errorTypes: ['deliveries', 'messages'],
  responseStatuses: ['deliveries', 'messages'],
  attemptsMin: ['deliveries', 'messages'],
  attemptsMax: ['deliveries', 'messages'],
  failedFrom: ['deliveries', 'messages'],
  failedTo: ['deliveries', 'messages'],
} as const satisfies Record<string, readonly What[]>;

/** Fields of the filter with one value. Each has a field beside it with several: its name with an s. */
const ofOne = [
  'sourceRef',
  'routeRef',
  'destinationRef',
  'applicationId',
  'endpointId',
  'eventType',
] as const satisfies readonly (keyof typeof fieldsOf)[];

/** The input of the rules. */
interface Spec {
  what: What;
  filter: Filter;
  destinationRef?: unknown;
}

interface Filter extends Partial<Record<string, unknown>> {
  statuses?: readonly string[];
}

const changeable = ['suspend', 'cancel'];

export function replayRules({ shape }: z.ZodObject): Rule[] {
  return [
    ...Object.entries(shape).flatMap(([name, field]) => (changeable.includes(name) ? [] : [unchanged(name, field)])),
    {
      at: 'cancel',
      transition: true,
      cel: 'self || !oldSelf',
      message: 'cannot be taken back',
      check: (self: boolean, oldSelf: boolean) => self || !oldSelf,
    },
    ...Object.entries(fieldsOf).map(([field, whats]) => onlyOf(whats, field)),
    ...ofOne.map(oneOrSeveral),
    {
      at: '',
      cel: "self.what == 'deliveries' || !has(self.destinationRef)",
      message: 'must be left out unless what is deliveries',
      fieldPath: '.destinationRef',
      check: ({ what, destinationRef }: Spec) => what === 'deliveries' || destinationRef === undefined,
    },
    ...(['deliveries', 'messages', 'events'] as const).map(statusesOf),
    ...['from', 'to', 'failedFrom', 'failedTo'].map((field) => afterEpoch(`filter.${field}`)),
    inOrder('from', 'to', (from: string, to: string) => nanosecondsOf(from) <= nanosecondsOf(to)),
    inOrder('failedFrom', 'failedTo', (from: string, to: string) => nanosecondsOf(from) <= nanosecondsOf(to)),
    inOrder('attemptsMin', 'attemptsMax', (min: number, max: number) => min <= max),
  ];
}

function unchanged(name: string, field: z.core.$ZodType): Rule {
  const text = (spec: Record<string, unknown>) => canonicalJson({ value: canonicalValue(field, spec[name]) });
  return {
    at: '',
    transition: true,
    cel: `has(self.${name}) == has(oldSelf.${name}) && (!has(self.${name}) || self.${name} == oldSelf.${name})`,
    message: 'cannot be changed; make another replay',
    fieldPath: `.${name}`,
    check: (self: Record<string, unknown>, oldSelf: Record<string, unknown>) => text(self) === text(oldSelf),
  };
}

function onlyOf(whats: readonly What[], field: string): Rule {
  return {
    at: '',
    cel: `self.what in [${whats.map((what) => `'${what}'`).join(', ')}] || !has(self.filter.${field})`,
    message: `must be left out unless what is ${whats.join(' or ')}`,
    fieldPath: `.filter.${field}`,
    check: ({ what, filter }: Spec) => whats.includes(what) || filter[field] === undefined,
  };
}

function oneOrSeveral(one: string): Rule {
  const several = `${one}s`;
  return {
    at: 'filter',
    cel: `!has(self.${one}) || !has(self.${several})`,
    message: `must be left out beside ${one}`,
    fieldPath: `.${several}`,
    check: ({ [one]: first, [several]: others }: Filter) => first === undefined || others === undefined,
  };
}

function statusesOf(what: What): Rule {
  const known: readonly string[] = replayedStatuses[what];
  return {
    at: '',
    cel: `self.what != '${what}' || !has(self.filter.statuses) || self.filter.statuses.all(s, s in ${JSON.stringify(known).replaceAll('"', "'")})`,
    message: `must be of ${known.join(', ')} when what is ${what}`,
    fieldPath: '.filter.statuses',
    check: ({ what: chosen, filter: { statuses = [] } }: Spec) => chosen !== what || statuses.every((each) => known.includes(each)),
  };
}

function inOrder<Value>(first: string, last: string, isInOrder: (first: Value, last: Value) => boolean): Rule {
  return {
    at: 'filter',
    cel: `!has(self.${first}) || !has(self.${last}) || self.${first} <= self.${last}`,
    message: `must not be less than ${first}`,
    fieldPath: `.${last}`,
    check: ({ [first]: from, [last]: to }: Record<string, Value | undefined>) =>
      from === undefined || to === undefined || isInOrder(from, to),
  };
}
