import { replayedDeliveryStatuses, replayedEventStatuses, replayedMessageStatuses } from '../../../src/core/replay-statuses.ts';
import { many, ref, specCases, text, type ValidationCase } from './case.ts';

const { valid, invalid, validChange, invalidChange } = specCases('Replay', { what: 'deliveries' });
const filter = (fields: Record<string, unknown>) => ({ filter: fields });
const messages = (fields: Record<string, unknown>) => ({ what: 'messages', filter: fields });
const events = (fields: Record<string, unknown>) => ({ what: 'events', filter: fields });
const noon = '2026-01-31T12:00:00Z';

/** Each field with a value, and with another one. */
const fields: [field: string, value: unknown, other: unknown][] = [
  ['filter', { statuses: ['dlq'] }, { statuses: ['failed'] }],
  ['ratePerSecond', 10, 11],
  ['destinationRef', ref('a'), ref('b')],
  ['stopAfterFailurePercent', 10, 11],
  ['ttlSecondsAfterFinished', 10, 11],
  ['dryRun', true, false],
];

export const replayCases: ValidationCase[] = [
  valid('the smallest one, with defaults', {}),
  invalid('nothing to replay', { what: null }, 'spec.what'),
  invalid('something else to replay', { what: 'sources' }, 'spec.what'),
  valid('every field of deliveries', {
    filter: {
      ids: ['msg_a'],
      statuses: replayedDeliveryStatuses,
      routeRef: ref('orders'),
      destinationRef: ref('shop'),
      errorTypes: ['timeout'],
      responseStatuses: ['503', '4xx'],
      attemptsMin: 1,
      attemptsMax: 1,
      from: noon,
      to: noon,
      failedFrom: noon,
      failedTo: noon,
      where: 'event.type == "order.paid"',
    },
    ratePerSecond: 10_000,
    destinationRef: ref('other'),
    stopAfterFailurePercent: 100,
    ttlSecondsAfterFinished: 0,
    dryRun: true,
    suspend: true,
    cancel: true,
  }),
  valid(
    'every field of messages',
    messages({ statuses: replayedMessageStatuses, applicationId: 'app_a', endpointId: 'ep_a', eventType: 'order.paid' }),
  ),
  valid(
    'every field of events',
    events({
      ids: ['evt_a'],
      statuses: replayedEventStatuses,
      sourceRef: ref('shop'),
      routeRef: ref('orders'),
      destinationRef: ref('target'),
      from: noon,
      to: noon,
      where: 'event.type == "shop"',
    }),
  ),
  valid(
    'several of each of deliveries',
    filter({ routeRefs: many(10, (i) => ref(`route-${i}`)), destinationRefs: [ref('shop'), ref('other')] }),
  ),
  valid(
    'several of each of messages',
    messages({ applicationIds: ['app_a', 'app_b'], endpointIds: many(10, (i) => `ep_${i}`), eventTypes: ['order.paid', 'order.made'] }),
  ),
  valid(
    'several of each of events',
    events({ sourceRefs: [ref('shop'), ref('bank')], routeRefs: [ref('orders')], destinationRefs: [ref('target'), ref('other')] }),
  ),
  ...['sourceRefs', 'routeRefs', 'destinationRefs'].flatMap((field) => [
    invalid(`no ${field}`, events({ [field]: [] }), `spec.filter.${field}`),
    invalid(`11 ${field}`, events({ [field]: many(11, (i) => ref(`a-${i}`)) }), `spec.filter.${field}`),
    invalid(`one of ${field} twice`, events({ [field]: [ref('a'), ref('a')] }), `spec.filter.${field}[1]`),
    invalid(`${field} beside one`, events({ [field]: [ref('a')], [field.slice(0, -1)]: ref('b') }), `spec.filter.${field}`),
    invalid(`${field} of messages`, messages({ [field]: [ref('a')] }), `spec.filter.${field}`),
  ]),
  invalid('sources of deliveries', filter({ sourceRefs: [ref('a')] }), 'spec.filter.sourceRefs'),
  ...['applicationIds', 'endpointIds', 'eventTypes'].flatMap((field) => [
    invalid(`no ${field}`, messages({ [field]: [] }), `spec.filter.${field}`),
    invalid(`11 ${field}`, messages({ [field]: many(11, (i) => `a_${i}`) }), `spec.filter.${field}`),
    invalid(`one of ${field} twice`, messages({ [field]: ['a', 'a'] }), `spec.filter.${field}[1]`),
    invalid(`${field} beside one`, messages({ [field]: ['a'], [field.slice(0, -1)]: 'b' }), `spec.filter.${field}`),
    invalid(`${field} of deliveries`, filter({ [field]: ['a'] }), `spec.filter.${field}`),
  ]),
  invalid('another destination for events', { what: 'events', destinationRef: ref('a') }, 'spec.destinationRef'),
  invalid('a status of deliveries for events', events({ statuses: ['filtered', 'dlq'] }), 'spec.filter.statuses'),
  invalid('a status of events for deliveries', filter({ statuses: ['filtered', 'no_routes'] }), 'spec.filter.statuses'),
  ...Object.entries({
    attemptsMin: 1,
    attemptsMax: 1,
    failedFrom: noon,
    failedTo: noon,
    errorTypes: ['dns'],
    responseStatuses: ['5xx'],
  }).map(([field, value]) => invalid(`${field} of events`, events({ [field]: value }), `spec.filter.${field}`)),
  invalid('a source of deliveries', filter({ sourceRef: ref('a') }), 'spec.filter.sourceRef'),
  ...['routeRef', 'destinationRef'].map((field) =>
    invalid(`${field} of messages`, messages({ [field]: ref('a') }), `spec.filter.${field}`),
  ),
  invalid('another destination for messages', { what: 'messages', destinationRef: ref('a') }, 'spec.destinationRef'),
  ...['applicationId', 'endpointId', 'eventType'].map((field) =>
    invalid(`${field} of deliveries`, filter({ [field]: 'a' }), `spec.filter.${field}`),
  ),
  invalid('a status of messages for deliveries', filter({ statuses: ['dlq', 'exhausted'] }), 'spec.filter.statuses'),
  invalid('a status of deliveries for messages', messages({ statuses: ['dlq', 'failed'] }), 'spec.filter.statuses'),
  invalid('a status of what is under way', filter({ statuses: ['pending'] }), 'spec.filter.statuses[0]'),
  invalid('a status twice', filter({ statuses: ['dlq', 'dlq'] }), 'spec.filter.statuses[1]'),
  invalid('no statuses', filter({ statuses: [] }), 'spec.filter.statuses'),
  valid('100 ids', filter({ ids: many(100, (i) => `${i}-${text(120)}`) })),
  invalid('101 ids', filter({ ids: many(101, (i) => `msg_${i}`) }), 'spec.filter.ids'),
  invalid('an empty id', filter({ ids: [''] }), 'spec.filter.ids[0]'),
  invalid('a class in upper case', filter({ responseStatuses: ['5XX'] }), 'spec.filter.responseStatuses[0]'),
  invalid('a status that is none', filter({ responseStatuses: ['600'] }), 'spec.filter.responseStatuses[0]'),
  invalid('a number as status', filter({ responseStatuses: [503] }), 'spec.filter.responseStatuses[0]'),
  invalid('fewer attempts at most than at least', filter({ attemptsMin: 2, attemptsMax: 1 }), 'spec.filter.attemptsMax'),
  invalid('an end before the beginning', filter({ from: noon, to: '2026-01-31T11:59:59.999999999Z' }), 'spec.filter.to'),
  valid('a later beginning in another zone', filter({ from: '2026-01-31T13:00:00+02:00', to: noon })),
  invalid(
    'an end of failures before their beginning',
    filter({ failedFrom: noon, failedTo: '2026-01-30T12:00:00Z' }),
    'spec.filter.failedTo',
  ),
  valid('beginnings without an end', filter({ from: noon, failedFrom: noon })),
  ...['from', 'to', 'failedFrom', 'failedTo'].flatMap((field) => [
    invalid(`a time of ${field} that is relative`, filter({ [field]: '-1h' }), `spec.filter.${field}`),
    invalid(`a time of ${field} before 1970`, filter({ [field]: '1969-12-31T23:59:59Z' }), `spec.filter.${field}`),
    invalid(`a list as ${field}`, filter({ [field]: [noon] }), `spec.filter.${field}`, ''),
  ]),
  valid('an expression that does not compile, which the compile step refuses', filter({ where: 'event.' })),
  valid('an expression of 1000 characters', filter({ where: text(1000) })),
  invalid('an expression of 1001 characters', filter({ where: text(1001) }), 'spec.filter.where'),
  invalid('an unknown condition', filter({ status: 'dlq' }), 'spec.filter.status'),
  invalid('a rate of nothing', { ratePerSecond: 0 }, 'spec.ratePerSecond'),
  invalid('a rate of more than 10,000', { ratePerSecond: 10_001 }, 'spec.ratePerSecond'),
  invalid('an end at 0 percent', { stopAfterFailurePercent: 0 }, 'spec.stopAfterFailurePercent'),
  invalid('an end at 101 percent', { stopAfterFailurePercent: 101 }, 'spec.stopAfterFailurePercent'),
  valid('a year until it is deleted', { ttlSecondsAfterFinished: 31_536_000 }),
  invalid('more than a year until it is deleted', { ttlSecondsAfterFinished: 31_536_001 }, 'spec.ttlSecondsAfterFinished'),
  invalid('an unknown field', { query: {} }, 'spec.query'),

  invalidChange('other messages', { what: 'deliveries' }, { what: 'messages' }, 'spec.what'),
  ...fields.flatMap(([field, value, other]) => [
    invalidChange(`another ${field}`, { [field]: value }, { [field]: other }, `spec.${field}`),
    invalidChange(`${field} where there was none`, {}, { [field]: value }, `spec.${field}`),
    invalidChange(`no ${field} any more`, { [field]: value }, {}, `spec.${field}`),
  ]),
  validChange('a default that is written down', {}, { ratePerSecond: 100, dryRun: false, filter: {} }),
  validChange('the same in another order and another zone', filter({ ids: ['a', 'b'], from: noon }), {
    filter: { ids: ['b', 'a'], from: '2026-01-31T13:00:00.000+01:00' },
  }),
  validChange('the same destinations in another order', filter({ destinationRefs: [ref('a'), ref('b')] }), {
    filter: { destinationRefs: [ref('b'), ref('a')] },
  }),
  invalidChange(
    'one more destination',
    filter({ destinationRefs: [ref('a')] }),
    filter({ destinationRefs: [ref('a'), ref('b')] }),
    'spec.filter',
  ),
  validChange('a pause', {}, { suspend: true }),
  validChange('the end of a pause', { suspend: true }, {}),
  validChange('its end', {}, { cancel: true }),
  validChange('a pause of what was ended', { cancel: true }, { cancel: true, suspend: true }),
  invalidChange('an end that is taken back', { cancel: true }, { cancel: false }, 'spec.cancel'),
  invalidChange('an end that is left out again', { cancel: true }, {}, 'spec.cancel'),
];
