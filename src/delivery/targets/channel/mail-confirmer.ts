import { randomBytes } from 'node:crypto';
import type { Clock } from '../../../core/clock.ts';
import { base32 } from '../../../core/ids.ts';
import type { Logger } from '../../../core/logger.ts';
import { mailConfirmationToken, type UnconfirmedRecipient } from '../../../core/mail-confirmation.ts';
import type { Keyring } from '../../../core/sealing.ts';
import type { MailBudget } from '../../../data/alerts/mail-budget.ts';
import type { MailboxLinks, MailRecipients } from '../../../data/alerts/mail-recipients.ts';
import type { HttpResult } from '../http/http-exchange.ts';
import { isSurelyNotSent, type Mail } from './mailer.ts';

/** The sender of the alert or the test waits for it. */
const maxAskingMs = 5000;

export interface MailConfirmerOptions {
  recipients: MailRecipients;
  /** Links of an organization in a day, besides its budget of e-mails. */
  links: MailBudget;
  mailboxes: MailboxLinks;
  keyring: Keyring;
  /** The page behind the links. */
  pageUrl: string;
  logger: Logger;
}

/** Tracks which addresses accept the e-mails of an organization, and sends requests to the others. */
export class MailConfirmer {
  readonly #options: MailConfirmerOptions;

  constructor(options: MailConfirmerOptions) {
    this.#options = options;
  }

  async sorted(org: string, addresses: readonly string[]): Promise<{ confirmed: string[]; unconfirmed: UnconfirmedRecipient[] }> {
    const states = await this.#options.recipients.states(org, addresses);
    const confirmed: string[] = [];
    const unconfirmed: UnconfirmedRecipient[] = [];
    addresses.forEach((address, index) => {
      const state = states[index] ?? 'waiting';
      if (state === 'confirmed') confirmed.push(address);
      else unconfirmed.push({ address, state });
    });
    return { confirmed, unconfirmed };
  }

  /**
   * Sends a link to those that wait and have none. Ends after 5 s, and with the first without a link in the budget or without a server response; the next
   * e-mail continues. A link that may have gone out, or that the server refuses for good, is not sent again before it expires. Never rejects.
   */
  async ask(
    org: string,
    unconfirmed: readonly UnconfirmedRecipient[],
    { clock, signal, send }: { clock: Clock; signal: AbortSignal; send: (mail: Mail) => Promise<HttpResult> },
  ): Promise<void> {
    const { recipients, links, mailboxes, logger } = this.#options;
    const endMs = clock.now() + maxAskingMs;
    try {
      for (const { address, state } of unconfirmed) {
        if (clock.now() >= endMs) return;
        const asking = state === 'waiting' ? await recipients.beginAsking(org, address) : null;
        if (asking === null) continue;
        const mailbox = await mailboxes.take(org, address);
        if (mailbox === null) {
          await asking.failed();
          continue;
        }
        const link = await links.take(org, 1);
        if (link === null) {
          await mailbox.giveBack();
          await asking.failed();
          return;
        }
        const result = await send(this.#mail(org, address, clock.now()));
        if (isRefusedForGood(result) || !isSurelyNotSent(result, signal)) await asking.sent();
        else {
          await asking.failed();
          await Promise.all([link.giveBack(), mailbox.giveBack()]);
        }
        if (result.type === 'error') return;
      }
    } catch (error) {
      logger.debug({ err: error }, 'confirmation e-mails could not be sent');
    }
  }

  /** Makes the e-mail with the link. It contains no text of a user of the installation. */
  #mail(org: string, address: string, nowMs: number): Mail {
    const { pageUrl, keyring } = this.#options;
    const url = `${pageUrl}?token=${mailConfirmationToken({ org, address }, keyring, nowMs)}`;
    const text = [
      'An organization that uses Posthorn wants to send alerts about its webhooks to this address.',
      '',
      'To allow it or to decline, open this page within 7 days:',
      url,
      '',
      'If you do nothing, no alerts are sent to this address.',
      '',
    ].join('\n');
    return {
      account: org,
      to: [address],
      id: `confirm_${base32(randomBytes(10))}`,
      subject: '[Posthorn] Confirm your address for alerts',
      text,
    };
  }
}

function isRefusedForGood(result: HttpResult): boolean {
  return result.type === 'response' && result.status >= 500;
}
