import { createTransport, type Transporter } from 'nodemailer';
import type { Clock } from '../../../core/clock.ts';
import type { HttpResult } from '../http/http-exchange.ts';
import { DeadlineError } from '../http/http-exchange.ts';
import type { EmailText } from './email.ts';

export interface SmtpSettings {
  host: string;
  port: number;
  /** `starttls`: required before anything is said; `implicit`: from the first byte; `off`: in clear, for a relay on the same machine. */
  tls: 'starttls' | 'implicit' | 'off';
  /** Null: the server asks for none. */
  credentials: { user: string; password: string } | null;
  /** Address, with or without a name. */
  from: string;
  /** PEM of certificate authorities trusted instead of the well-known ones; absent: those. */
  ca?: string[];
}

export interface Mail extends EmailText {
  to: readonly string[];
  /** The same on every attempt, so that a mail that comes twice is seen to be one. */
  id: string;
}

const connections = 4;
const waitMs = 10_000;
/** Under way or waiting for a connection. */
const mostMails = connections + 32;

/** Sends e-mails over SMTP, on a few connections that are kept for a while. */
export class Mailer {
  readonly #transport: Transporter;
  readonly #from: string;
  #mails = 0;

  constructor({ host, port, tls, credentials, from, ca }: SmtpSettings) {
    this.#from = from;
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
   * and one too many is an error at once.
   */
  async send(
    { to, id, subject, text, html }: Mail,
    { timeoutMs, clock, signal }: { timeoutMs: number; clock: Clock; signal: AbortSignal },
  ): Promise<HttpResult> {
    if (this.#mails >= mostMails) return { type: 'error', error: new Error('too many e-mails wait for the mail server') };
    const deadline = new AbortController();
    const givenUp = AbortSignal.any([signal, deadline.signal]);
    const cancel = clock.after(timeoutMs, () => deadline.abort(new DeadlineError(`no complete answer within ${timeoutMs} ms`)));
    this.#mails += 1;
    try {
      await this.#transport.sendMail({
        from: this.#from,
        to: [...to],
        subject,
        text,
        html,
        messageId: `<${id}@posthorn>`,
        headers: { 'Auto-Submitted': 'auto-generated' },
        signal: givenUp,
      });
      return answered(250);
    } catch (thrown) {
      const error: unknown = givenUp.aborted ? givenUp.reason : thrown;
      const code = replyCode(error);
      return code === null ? { type: 'error', error: error instanceof Error ? error : new Error(String(error)) } : answered(code);
    } finally {
      this.#mails -= 1;
      cancel();
    }
  }

  close(): void {
    this.#transport.close();
  }
}

function answered(status: number): HttpResult {
  return { type: 'response', status, retryAfter: null, body: Buffer.alloc(0) };
}

/** What the server answered when it refused; null when it did not come to that. */
function replyCode(error: unknown): number | null {
  if (typeof error !== 'object' || error === null || !('responseCode' in error)) return null;
  return typeof error.responseCode === 'number' && error.responseCode >= 300 ? error.responseCode : null;
}
