import { createTransport, type Transporter } from 'nodemailer';
import type { Clock } from '../../../core/clock.ts';
import { OpenShares } from '../../../core/open-shares.ts';
import type { HttpResult } from '../http/http-exchange.ts';
import { DeadlineError } from '../http/http-exchange.ts';
import { SentSecrets } from '../http/sent-secrets.ts';
import type { EmailText } from './alert-email.ts';

export interface SmtpSettings {
  host: string;
  port: number;
  /** `starttls`: required before anything is sent; `implicit`: from the first byte; `off`: in clear, for a relay on the same machine. */
  tls: 'starttls' | 'implicit' | 'off';
  /** Null: the server requires none. */
  credentials: { user: string; password: string } | null;
  /** Address, with or without a name. */
  from: string;
  /** PEM of certificate authorities trusted instead of the well-known ones; absent: those. */
  ca?: string[];
}

export interface Mail extends Omit<EmailText, 'html'> {
  /** Absent: text alone. */
  html?: string;
  /** The organization whose share it takes. */
  account: string;
  to: readonly string[];
  /** Equal on every attempt, so that clients recognize a mail that arrives twice. */
  id: string;
}

const connections = 4;
const waitMs = 10_000;
/** Under way or waiting for a connection. */
const maxMails = connections + 32;
/** Concurrent e-mails of one organization. */
const maxMailsOfAccount = maxMails / 4;

/** Sends e-mails over SMTP, on a few connections that are kept for a while. */
export class Mailer {
  readonly #transport: Transporter;
  readonly #from: string;
  readonly #secrets: SentSecrets;
  readonly #mails = new OpenShares({ all: maxMails, ofOwner: maxMailsOfAccount });

  constructor({ host, port, tls, credentials, from, ca }: SmtpSettings) {
    this.#from = from;
    this.#secrets =
      credentials === null ? SentSecrets.none : new SentSecrets([credentials.password, `\0${credentials.user}\0${credentials.password}`]);
    this.#transport = createTransport({
      pool: true,
      maxConnections: connections,
      host,
      port,
      secure: tls === 'implicit',
      requireTLS: tls === 'starttls',
      ignoreTLS: tls === 'off',
      tls: { minVersion: 'TLSv1.2', ...(ca !== undefined && { ca }) },
      ...(credentials !== null && { auth: { user: credentials.user, pass: credentials.password } }),
      connectionTimeout: waitMs,
      greetingTimeout: waitMs,
      socketTimeout: waitMs,
      disableFileAccess: true,
      disableUrlAccess: true,
    });
  }

  /**
   * The reply code of the server as a status. Never rejects; does not wait beyond `timeoutMs`. A mail that is given up is sent no more,
   * and one too many, of all or of the organization, is an error at once.
   */
  async send(
    { account, to, id, subject, text, html }: Mail,
    { timeoutMs, clock, signal }: { timeoutMs: number; clock: Clock; signal: AbortSignal },
  ): Promise<HttpResult> {
    if (!this.#mails.take(account)) {
      const whose = this.#mails.open >= maxMails ? '' : ' of the organization';
      return refused(`too many e-mails${whose} wait for the mail server`);
    }
    const deadline = new AbortController();
    const givenUp = AbortSignal.any([signal, deadline.signal]);
    const cancel = clock.after(timeoutMs, () => deadline.abort(new DeadlineError(`no complete answer within ${timeoutMs} ms`)));
    try {
      await this.#transport.sendMail({
        from: this.#from,
        to: [...to],
        subject,
        text,
        ...(html !== undefined && { html }),
        messageId: `<${id}@posthorn>`,
        headers: { 'Auto-Submitted': 'auto-generated' },
        signal: givenUp,
      });
      return answered(250);
    } catch (thrown) {
      const error: unknown = givenUp.aborted ? givenUp.reason : thrown;
      const code = replyCode(error);
      if (code !== null) return answered(code);
      const ownError = error instanceof Error ? error : new Error(String(error));
      ownError.message = this.#secrets.maskedIn(ownError.message);
      return { type: 'error', error: ownError };
    } finally {
      this.#mails.giveBack(account);
      cancel();
    }
  }

  close(): void {
    this.#transport.close();
  }
}

/** Whether the server cannot have taken the mail. One that was given up may have been. */
export function isSurelyNotSent(result: HttpResult, signal: AbortSignal): boolean {
  if (result.type === 'response') return result.status >= 300;
  return !signal.aborted && !(result.error instanceof DeadlineError);
}

function refused(why: string): HttpResult {
  return { type: 'error', error: new Error(why) };
}

function answered(status: number): HttpResult {
  return { type: 'response', status, retryAfter: null, body: Buffer.alloc(0) };
}

/** The server's response when it refused; null when it did not come to that. */
function replyCode(error: unknown): number | null {
  if (typeof error !== 'object' || error === null || !('responseCode' in error)) return null;
  return typeof error.responseCode === 'number' && error.responseCode >= 300 ? error.responseCode : null;
}
