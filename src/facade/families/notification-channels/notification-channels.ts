import { z } from 'zod';
import { PosthornError } from '../../../core/errors.ts';
import { kinds, type PosthornObject, type SpecInputOf } from '../../../resources/kinds.ts';
import type { Call } from '../../http/operation.ts';
import { optionalPageQuery } from '../../http/pagination.ts';
import { queryBoolean } from '../../http/query.ts';
import { idOf } from '../../records/lookup.ts';
import {
  identityOf,
  isoTimeOrNull,
  nameToSpec,
  recordIdentity,
  recordSwitch,
  recordTimes,
  sentName,
  sentSlug,
  sentSwitch,
  switchOf,
  switchSynonym,
  timesOf,
  timestamp,
} from '../../records/record-fields.ts';
import { resourceFamily } from '../../records/resource-family.ts';
import { configBody, configRecord, configToRecord, configToSpec, newConfigBody } from './channel-config.ts';
import { channelTestOperation } from './channel-test.ts';
import { channelAlertsOperation } from './list-channel-alerts.ts';

const { type, enabled } = kinds.NotificationChannel.spec.shape;

const item = z
  .object({
    ...recordIdentity,
    type,
    ...recordSwitch(enabled),
    lastNotifiedAt: timestamp.nullable().describe('When an alert last arrived there; tests do not count.'),
  })
  .meta({ id: 'NotificationChannelItem' });

const record = item
  .extend({ config: configRecord.describe('Where alerts go; its shape depends on the type.'), ...recordTimes })
  .meta({ id: 'NotificationChannel' });

const body = z.strictObject({
  name: sentName.optional(),
  slug: sentSlug.optional(),
  type: type.optional(),
  config: configBody.optional(),
  ...sentSwitch(enabled),
});

async function toItem(object: PosthornObject<'NotificationChannel'>, call: Call): Promise<z.input<typeof item>> {
  const { services, caller } = call;
  return {
    ...identityOf(object, call),
    type: object.spec.type,
    ...switchOf(object),
    lastNotifiedAt: isoTimeOrNull(await services.channelAlerts.lastArrivalMs(caller.organization.id, idOf(object))),
  };
}

export const notificationChannels = resourceFamily(
  {
    kind: 'NotificationChannel',
    name: 'Notification channels',
    path: '/notification-channels',
    description: 'Where alerts about routes go.',
    record,
    item,
    body,
    required: ['name', 'type', 'config'],
    onCreate: { config: newConfigBody },
    synonyms: { isActive: switchSynonym() },
    immutable: { slug: (object) => [object.metadata.name], type: (object) => [object.spec.type] },
    isListedWhole: true,
    query: z.object({
      type: type.optional(),
      enabled: queryBoolean.optional().describe('Only those that are enabled, or not.'),
      ...optionalPageQuery,
    }),
    examples: {
      create: { name: 'On call', type: 'slack', config: { webhookUrl: 'https://hooks.slack.com/services/T000/B000/XXXX' } },
      change: { enabled: false },
      shown: { config: { webhookUrl: '••••XXXX' } },
    },
    errors: { create: ['INVALID_CONFIG'], change: ['INVALID_CONFIG', 'CREDENTIALS_REQUIRED'] },
    filter: (query) => (object) =>
      (query.type === undefined || object.spec.type === query.type) &&
      (query.enabled === undefined || object.spec.enabled === query.enabled),
    toItem,
    toRecord: async (object, call): Promise<z.input<typeof record>> => ({
      ...(await toItem(object, call)),
      config: await configToRecord(object, call),
      ...timesOf(object),
    }),
    toSpec: async ({ call, body: sent, current, secrets }) => {
      const wanted = current?.spec.type ?? sent.type;
      if (wanted === undefined) throw new PosthornError('VALIDATION_FAILED', 'type is required.');
      return {
        name: nameToSpec(sent.name, current),
        type: wanted,
        enabled: sent.enabled ?? current?.spec.enabled,
        ...(await configToSpec(call, wanted, sent.config, current?.spec, secrets)),
      } satisfies SpecInputOf<'NotificationChannel'>;
    },
    beforeDelete: {
      looksAt: ['Route'],
      run: async (object, call) => {
        await call.services.channelAlerts.forget(call.caller.organization.id, idOf(object));
      },
    },
  },
  [channelTestOperation, channelAlertsOperation],
);
