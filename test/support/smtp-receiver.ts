import { buffer } from 'node:stream/consumers';
import PostalMime, { type Email } from 'postal-mime';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';
import { Mailer, type SmtpSettings } from '../../src/delivery/targets/channel/mailer.ts';
import { eventually } from './eventually.ts';

export interface ReceivedMail {
  from: string;
  to: string[];
  user: string | undefined;
  isEncrypted: boolean;
  raw: string;
  mail: Email;
}

export interface SmtpReceiver {
  readonly port: number;
  readonly mails: readonly ReceivedMail[];
  /** Those that the user may have. */
  readonly passwords: Set<string>;
  arrived(count: number): Promise<readonly ReceivedMail[]>;
  stop(): Promise<void>;
}

/** A mailer that sends to the receiver over STARTTLS. */
export function mailerTo({ port }: SmtpReceiver, settings: Partial<SmtpSettings> & Pick<SmtpSettings, 'credentials' | 'ca'>): Mailer {
  return new Mailer({ host: '127.0.0.1', port, tls: 'starttls', from: 'Posthorn <alerts@example.com>', ...settings });
}

/** A real SMTP server, on loopback unless another `host` is given, that takes mails of one user over STARTTLS, parses and keeps them. */
export async function startSmtpReceiver(
  options: SMTPServerOptions & { user: string; password: string; host?: string },
): Promise<SmtpReceiver> {
  const { user, password, host = '127.0.0.1', ...rest } = options;
  const passwords = new Set([password]);
  const mails: ReceivedMail[] = [];
  const server = new SMTPServer({
    authMethods: ['PLAIN'],
    onAuth: (auth, _session, done) => {
      if (auth.username === user && passwords.has(auth.password ?? '')) done(null, { user });
      else done(new Error('no such user'));
    },
    onData: (stream, session, done) => {
      void buffer(stream).then(async (raw) => {
        const { mailFrom, rcptTo } = session.envelope;
        mails.push({
          from: mailFrom === false ? '' : mailFrom.address,
          to: rcptTo.map(({ address }) => address),
          user: typeof session.user === 'string' ? session.user : undefined,
          isEncrypted: session.secure,
          raw: raw.toString(),
          mail: await PostalMime.parse(raw),
        });
        done();
      }, done);
    },
    ...rest,
  });
  server.on('error', () => {});
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  const address = server.server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    mails,
    passwords,
    arrived: async (count) => {
      await eventually(`${count} mails, with ${mails.length} here`, 30_000, () => mails.length >= count);
      return mails;
    },
    stop: () => new Promise((resolve) => server.close(() => resolve())),
  };
}
