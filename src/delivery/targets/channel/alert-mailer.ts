import type { Counter } from 'prom-client';
import type { Logger } from '../../../core/logger.ts';
import { unconfirmedProblem } from '../../../core/mail-confirmation.ts';
import { mailDomainProblem, refusedAddresses } from '../../../core/mail-domains.ts';
import type { MailBudget } from '../../../data/alerts/mail-budget.ts';
import type { HttpResult } from '../http/http-exchange.ts';
import { MailRefusedError } from '../refusals.ts';
import type { MailConfirmer } from './mail-confirmer.ts';
import { isSurelyNotSent, type Mail, type Mailer } from './mailer.ts';

export interface AlertMailerOptions {
  mailer: Mailer;
  budget: MailBudget;
  /** Domains that may get e-mails; empty: any. */
  domains: readonly string[];
  /** E-mails, one for each address, by what became of them: sent, failed, over_budget, refused, unconfirmed. */
  mails: Counter<'outcome'>;
  /** Null: addresses need not be confirmed. */
  confirmer: MailConfirmer | null;
  logger: Logger;
}

/** Sends the e-mails of organizations, each within its budget of the day, to domains that the installation allows. */
export class AlertMailer {
  readonly #options: AlertMailerOptions;

  constructor(options: AlertMailerOptions) {
    this.#options = options;
  }

  /** As `Mailer.send`; addresses of other domains get nothing, and unconfirmed ones at most a link. An e-mail over the budget is an error with that reason; one that the server has certainly not accepted uses none of it. */
  async send({ to, ...rest }: Mail, options: Parameters<Mailer['send']>[1]): Promise<HttpResult> {
    const { domains, confirmer, mails } = this.#options;
    const refused = refusedAddresses(to, domains);
    mails.inc({ outcome: 'refused' }, refused.length);
    const allowed = to.filter((address) => !refused.includes(address));
    if (allowed.length === 0)
      return { type: 'error', error: new MailRefusedError(mailDomainProblem(to, domains) ?? 'the e-mail has no address') };
    if (confirmer === null) return await this.#sendWithinBudget({ ...rest, to: allowed }, options);
    try {
      const { confirmed, unconfirmed } = await confirmer.sorted(rest.account, allowed);
      mails.inc({ outcome: 'unconfirmed' }, unconfirmed.length);
      const result: HttpResult =
        confirmed.length > 0
          ? await this.#sendWithinBudget({ ...rest, to: confirmed }, options)
          : { type: 'error', error: new MailRefusedError(unconfirmedProblem(unconfirmed) ?? '') };
      const send = (mail: Mail): Promise<HttpResult> => this.#sendWithinBudget(mail, options);
      await confirmer.ask(rest.account, unconfirmed, { clock: options.clock, signal: options.signal, send });
      return result;
    } catch (thrown) {
      mails.inc({ outcome: 'failed' }, allowed.length);
      return { type: 'error', error: thrown instanceof Error ? thrown : new Error(String(thrown)) };
    }
  }

  /** Why some of the addresses get nothing; null: all get what is sent. Rejects when Redis does not answer. */
  async unconfirmedProblem(org: string, to: readonly string[]): Promise<string | null> {
    const { confirmer } = this.#options;
    return confirmer === null ? null : unconfirmedProblem((await confirmer.sorted(org, to)).unconfirmed);
  }

  async #sendWithinBudget(mail: Mail, options: Parameters<Mailer['send']>[1]): Promise<HttpResult> {
    const { mailer, budget, mails, logger } = this.#options;
    const count = mail.to.length;
    try {
      const taken = await budget.take(mail.account, count);
      if (taken === null) {
        mails.inc({ outcome: 'over_budget' }, count);
        const why = `the organization has used its budget of ${budget.perDay} e-mails of the day (UTC)`;
        return { type: 'error', error: new MailRefusedError(why) };
      }
      const result = await mailer.send(mail, options);
      const isSent = result.type === 'response' && result.status < 300;
      mails.inc({ outcome: isSent ? 'sent' : 'failed' }, count);
      if (isSurelyNotSent(result, options.signal))
        await taken.giveBack().catch((error: unknown) => logger.debug({ err: error }, 'unsent e-mails were not returned to the budget'));
      return result;
    } catch (thrown) {
      mails.inc({ outcome: 'failed' }, count);
      return { type: 'error', error: thrown instanceof Error ? thrown : new Error(String(thrown)) };
    }
  }
}
