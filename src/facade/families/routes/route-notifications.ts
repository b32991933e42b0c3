import { z } from 'zod';
import { canonicalJson } from '../../../core/canonical-json.ts';
import { PosthornError } from '../../../core/errors.ts';
import { mailDomainProblem } from '../../../core/mail-domains.ts';
import { emailAddress } from '../../../resources/email-address.ts';
import type { SpecInputOf, SpecOf } from '../../../resources/kinds.ts';
import { routeNotifications } from '../../../resources/route-notifications.ts';
import type { Call } from '../../http/operation.ts';
import { byName, idOf } from '../../records/lookup.ts';
import { type Ref, reference, refuseRepeated } from '../../records/resolved-reference.ts';
import { shownField, specField } from '../../records/spec-field.ts';

type Notifications = SpecOf<'Route'>['notifications'];

const spec = routeNotifications.shape;
const defaults = routeNotifications.parse({});
const maxEmails = 20;
const maxChannels = 20;

/** The fields of a route's body with its notifications. */
export const notificationBody = {
  notifyOnFailure: specField(spec.onFailure),
  notifyOnSuccess: specField(spec.onSuccess),
  notifyOnRecovery: specField(spec.onRecovery),
  notifyEmails: z
    .string()
    .max(maxEmails * 256)
    .refine((value) => addressesIn(value).length <= maxEmails, { error: `must have at most ${maxEmails} addresses` })
    .refine((value) => addressesIn(value).every((address) => emailAddress.safeParse(address).success), {
      error: 'must be e-mail addresses, separated by commas',
    })
    .meta({ format: 'email-list' })
    .nullable()
    .optional()
    .describe(`Up to ${maxEmails} e-mail addresses, separated by commas. null removes them.`),
  notificationChannelIds: z
    .array(z.string().min(1).max(128))
    .max(maxChannels)
    .nullable()
    .optional()
    .describe('Ids or slugs of the channels that get the alerts. null, the default: all that are enabled.'),
  failureThreshold: specField(spec.failureThreshold, 'Consecutive failed messages, to one destination, before there is a failure alert.'),
};

/** The notification fields of a record. */
export const notificationRecord = {
  notifyOnFailure: shownField(spec.onFailure),
  notifyOnSuccess: shownField(spec.onSuccess),
  notifyOnRecovery: shownField(spec.onRecovery),
  notifyEmails: z.string().nullable().describe('E-mail addresses, separated by commas; null without any.'),
  notificationChannelIds: z.array(z.string()).nullable().describe('Ids of the channels that get the alerts; null: all that are enabled.'),
  failureThreshold: shownField(spec.failureThreshold),
};

export async function notificationsToRecord(notifications: Notifications, call: Call) {
  const { onFailure, onSuccess, onRecovery, failureThreshold, emails = [], channelRefs } = notifications ?? defaults;
  return {
    notifyOnFailure: onFailure,
    notifyOnSuccess: onSuccess,
    notifyOnRecovery: onRecovery,
    notifyEmails: emails.length === 0 ? null : emails.join(','),
    notificationChannelIds: channelRefs === undefined ? null : await Promise.all(channelRefs.map(({ name }) => idOfChannel(call, name))),
    failureThreshold,
  };
}

/** The slug represents a channel that does not exist. */
async function idOfChannel(call: Call, name: string): Promise<string> {
  const channel = await byName(call, 'NotificationChannel', name);
  return channel === null ? name : idOf(channel);
}

type Sent = z.output<z.ZodObject<typeof notificationBody>>;

/** `notifications` of a spec; VALIDATION_FAILED for a channel that does not exist or is named twice. Without a difference it stays as it was. */
export async function notificationsToSpec(call: Call, sent: Sent, current: Notifications): Promise<SpecInputOf<'Route'>['notifications']> {
  const before = current ?? defaults;
  const emails = sent.notifyEmails === undefined ? before.emails : emailList(sent.notifyEmails ?? '', before.emails);
  const added = (emails ?? []).filter((address) => before.emails?.includes(address) !== true);
  const problem = mailDomainProblem(added, call.services.mailDomains);
  if (problem !== null) throw new PosthornError('VALIDATION_FAILED', `notifyEmails: ${problem}.`);
  const channelRefs =
    sent.notificationChannelIds === undefined
      ? before.channelRefs
      : sent.notificationChannelIds === null
        ? undefined
        : await channelList(call, sent.notificationChannelIds, before.channelRefs);
  const after = {
    onFailure: sent.notifyOnFailure ?? before.onFailure,
    onSuccess: sent.notifyOnSuccess ?? before.onSuccess,
    onRecovery: sent.notifyOnRecovery ?? before.onRecovery,
    failureThreshold: sent.failureThreshold ?? before.failureThreshold,
    ...(channelRefs !== undefined && { channelRefs }),
    ...(emails !== undefined && { emails }),
  };
  return canonicalJson(after) === canonicalJson(before) ? current : after;
}

async function channelList(call: Call, ids: readonly string[], present: readonly Ref[] = []): Promise<Ref[]> {
  const field = 'notificationChannelIds';
  const refs = await Promise.all(ids.map((id, index) => reference(call, 'NotificationChannel', `${field}[${index}]`, id, present)));
  refuseRepeated(field, 'NotificationChannel', refs);
  return refs;
}

/** None reads the same whether the list is empty or absent, and is left as it was. */
function emailList(sent: string, current: string[] | undefined): string[] | undefined {
  const addresses = addressesIn(sent);
  return addresses.length > 0 || current?.length === 0 ? addresses : undefined;
}

/** Without those that are there twice. */
function addressesIn(value: string): string[] {
  const addresses = value.split(',').map((address) => address.trim());
  return [...new Set(addresses.filter((address) => address !== ''))];
}
