import type { Logger } from '../../core/logger.ts';
import type { SpentMailBudgets } from '../../data/mail-budget.ts';
import type { ObjectOf, PosthornObject } from '../../resources/kinds.ts';
import type { Finding } from '../conditions.ts';
import type { ControllerCaches } from '../controller-caches.ts';
import { isLive, organizationIdOf } from '../references.ts';
import {
  conditionOf,
  type HealthConditionsOptions,
  type HealthFindings,
  isStale,
  lookRegularly,
  writeHealthConditions,
} from './health-conditions.ts';
import { WritePace } from './write-pace.ts';

const withinBudget = 'WithinMailBudget';

export interface MailHealthOptions extends HealthConditionsOptions {
  caches: Pick<ControllerCaches, 'Organization' | 'NotificationChannel' | 'Route' | 'owners'>;
  mailBudgets: Pick<SpentMailBudgets, 'onDayOf'>;
  logger: Logger;
}

type MailKind = 'NotificationChannel' | 'Route';

/**
 * Says in conditions of the manager `posthorn-mail` why e-mails of channels and routes do not go out, until the signal aborts. `WithinMailBudget` is there from
 * when the organization is first refused an e-mail.
 */
export async function runMailHealth(options: MailHealthOptions, signal: AbortSignal): Promise<void> {
  const pace = new WritePace(options.clock);
  const turn = (): Promise<void> => pace.turn(0, signal);
  const failure = 'the state of the e-mails could not be written';
  await lookRegularly(() => look({ ...options, turn }, signal), { ...options, failure }, signal);
}

type LookOptions = MailHealthOptions & { turn: () => Promise<void> };

async function look(options: LookOptions, signal: AbortSignal): Promise<void> {
  const { caches, mailBudgets, clock } = options;
  const spent = await mailBudgets.onDayOf(clock.now());
  const day = new Date(clock.now()).toISOString().slice(0, 10);
  const findingsOf = (object: ObjectOf<MailKind>, addresses: readonly string[]): HealthFindings => {
    const org = organizationIdOf(caches, object);
    const isConcerned = org !== undefined && addresses.length > 0;
    const isSpent = isConcerned && spent.has(org);
    const hasBeen = conditionOf(object, withinBudget) !== undefined;
    return { [withinBudget]: isSpent ? budgetSpent(day) : isConcerned && hasBeen ? budgetLeft : null };
  };
  await write('NotificationChannel', caches.NotificationChannel.list(), (object) => findingsOf(object, channelAddresses(object)));
  await write('Route', caches.Route.list(), (object) => findingsOf(object, object.spec.notifications?.emails ?? []));

  async function write<K extends MailKind>(
    kind: K,
    objects: readonly ObjectOf<K>[],
    judge: (object: ObjectOf<K>) => HealthFindings,
  ): Promise<void> {
    for (const object of objects) {
      const findings = isLive(object) ? judge(object) : {};
      if (!isStale(object, findings)) continue;
      await options.turn();
      if (signal.aborted) return;
      await writeHealthConditions(kind, object, findings, { ...options, manager: 'posthorn-mail' });
    }
  }
}

function channelAddresses({ spec }: PosthornObject<'NotificationChannel'>): readonly string[] {
  return spec.email?.addresses ?? [];
}

const budgetLeft: Finding = { status: 'True', reason: 'MailBudgetLeft', message: 'e-mails are sent' };

function budgetSpent(day: string): Finding {
  const message = `the organization has had its e-mails of ${day} (UTC): no more are sent before midnight`;
  return { status: 'False', reason: 'MailBudgetSpent', message };
}
