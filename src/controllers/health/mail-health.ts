import type { Logger } from '../../core/logger.ts';
import { type RecipientState, unconfirmedProblem } from '../../core/mail-confirmation.ts';
import type { SpentMailBudgets } from '../../data/alerts/mail-budget.ts';
import type { MailRecipients } from '../../data/alerts/mail-recipients.ts';
import type { ObjectOf, PosthornObject } from '../../resources/kinds.ts';
import type { Finding } from '../conditions.ts';
import type { ControllerCaches } from '../controller-caches.ts';
import { isLive, organizationIdOf } from '../held-ids.ts';
import {
  checkPeriodically,
  conditionOf,
  type HealthConditionsOptions,
  type HealthFindings,
  isStale,
  writeHealthConditions,
} from './health-conditions.ts';
import { WritePace } from './write-pace.ts';

const withinBudget = 'WithinMailBudget';
const recipientsConfirmed = 'RecipientsConfirmed';

export interface MailHealthOptions extends HealthConditionsOptions {
  caches: Pick<ControllerCaches, 'Organization' | 'NotificationChannel' | 'Route' | 'owners'>;
  mailBudgets: Pick<SpentMailBudgets, 'onDayOf'>;
  /** Null: addresses need not be confirmed. */
  mailRecipients: Pick<MailRecipients, 'states'> | null;
  logger: Logger;
}

type MailKind = 'NotificationChannel' | 'Route';

/**
 * Reports in conditions of the manager `posthorn-mail` why e-mails of channels and routes are not sent, until the signal aborts. `WithinMailBudget` is there from
 * when the organization is first refused an e-mail, `RecipientsConfirmed` where addresses have to be confirmed.
 */
export async function runMailHealth(options: MailHealthOptions, signal: AbortSignal): Promise<void> {
  const pace = new WritePace(options.clock);
  const turn = (): Promise<void> => pace.turn(0, signal);
  const failure = 'the e-mail conditions could not be written';
  await checkPeriodically(() => check({ ...options, turn }, signal), { ...options, failure }, signal);
}

type CheckOptions = MailHealthOptions & { turn: () => Promise<void> };

/** An object with the addresses that get its e-mails. */
type Sender = { [K in MailKind]: { kind: K; object: ObjectOf<K>; addresses: readonly string[] } }[MailKind];

async function check(options: CheckOptions, signal: AbortSignal): Promise<void> {
  const { caches, mailBudgets, clock } = options;
  const day = new Date(clock.now()).toISOString().slice(0, 10);
  const spent = await mailBudgets.onDayOf(clock.now());
  const senders = sendersIn(caches);
  const recipients = await recipientsOf(senders, options);
  for (const sender of senders) {
    const org = organizationIdOf(caches, sender.object);
    const isConcerned = org !== undefined && sender.addresses.length > 0;
    const hasBeenSpent = conditionOf(sender.object, withinBudget) !== undefined;
    const findings = {
      [withinBudget]: isConcerned && spent.has(org) ? budgetSpent(day) : isConcerned && hasBeenSpent ? budgetLeft : null,
      [recipientsConfirmed]: isConcerned && recipients !== null ? confirmation(sender.addresses, recipients.get(org)) : null,
    };
    if (!isStale(sender.object, findings)) continue;
    await options.turn();
    if (signal.aborted) return;
    await write(sender, findings, options).catch((error: unknown) => {
      // It may be gone. The following ones are written all the same.
      const { name, namespace } = sender.object.metadata;
      options.logger.debug({ err: error, kind: sender.kind, namespace, name }, 'the e-mail conditions could not be written');
    });
  }
}

function sendersIn({ NotificationChannel, Route }: MailHealthOptions['caches']): Sender[] {
  const channels = NotificationChannel.list().map(
    (object): Sender => ({ kind: 'NotificationChannel', object, addresses: channelAddresses(object) }),
  );
  const routes = Route.list().map((object): Sender => ({ kind: 'Route', object, addresses: object.spec.notifications?.emails ?? [] }));
  return [...channels, ...routes].filter(({ object }) => isLive(object));
}

/** Answers of the owners of the addresses, by organization and address; null: no confirmation is required. */
async function recipientsOf(
  senders: readonly Sender[],
  { caches, mailRecipients }: MailHealthOptions,
): Promise<Map<string, Map<string, RecipientState>> | null> {
  if (mailRecipients === null) return null;
  const found = new Map<string, Map<string, RecipientState>>();
  const byOrganization = Map.groupBy(senders, ({ object }) => organizationIdOf(caches, object));
  for (const [org, own] of byOrganization) {
    if (org === undefined) continue;
    const addresses = [...new Set(own.flatMap((sender) => sender.addresses))];
    const states = await mailRecipients.states(org, addresses);
    found.set(org, new Map(addresses.map((address, index) => [address, states[index] ?? 'waiting'])));
  }
  return found;
}

async function write(sender: Sender, findings: HealthFindings, options: MailHealthOptions): Promise<void> {
  const how = { ...options, manager: 'posthorn-mail' };
  if (sender.kind === 'Route') await writeHealthConditions('Route', sender.object, findings, how);
  else await writeHealthConditions('NotificationChannel', sender.object, findings, how);
}

function channelAddresses({ spec }: PosthornObject<'NotificationChannel'>): readonly string[] {
  return spec.email?.addresses ?? [];
}

const budgetLeft: Finding = { status: 'True', reason: 'MailBudgetLeft', message: 'the e-mail budget of the day is not used up' };

function budgetSpent(day: string): Finding {
  const message = `the organization has used its e-mail budget of ${day} (UTC); no e-mail is sent before midnight`;
  return { status: 'False', reason: 'MailBudgetSpent', message };
}

function confirmation(addresses: readonly string[], states: ReadonlyMap<string, RecipientState> = new Map()): Finding {
  const unconfirmed = addresses.flatMap((address) => {
    const state = states.get(address) ?? 'waiting';
    return state === 'confirmed' ? [] : [{ address, state }];
  });
  const message = unconfirmedProblem(unconfirmed);
  if (message === null) return { status: 'True', reason: 'Confirmed', message: 'all recipients have confirmed their addresses' };
  return { status: 'False', reason: unconfirmed.some(({ state }) => state === 'waiting') ? 'AwaitingConfirmation' : 'Declined', message };
}
