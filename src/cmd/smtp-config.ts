import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { PosthornError } from '../core/errors.ts';
import { count, flag, hostList, portNumber } from './config-values.ts';
import { withoutLineBreak } from './file-variables.ts';

const servedBy: { roles: ('delivery' | 'standalone')[] } = { roles: ['delivery', 'standalone'] };
const address = /^[^\s<>@,;"]+@[^\s<>@,;"]+$/;
const named = /^[^\p{Cc}<>"]+ <[^\s<>@,;"]+@[^\s<>@,;"]+>$/u;

/** The server through which alerts go out by e-mail. */
export const smtpEnvironment = {
  POSTHORN_SMTP_HOST: z
    .string()
    .min(1)
    .regex(/^[^\s/]+$/, 'must be the name or address of a host')
    .optional()
    .describe('SMTP server for alerts by e-mail. Without it none are sent, and tests of such channels report it.')
    .meta(servedBy),
  POSTHORN_SMTP_PORT: portNumber
    .refine((port) => port > 0, 'must not be 0')
    .optional()
    .describe('Its port. Default: 587; with implicit TLS 465; without TLS 25.')
    .meta(servedBy),
  POSTHORN_SMTP_TLS: z
    .enum(['starttls', 'implicit', 'off'])
    .default('starttls')
    .describe('`starttls` and `implicit` insist on TLS. The authorities in `POSTHORN_EGRESS_CA_FILE` are trusted here, too.')
    .meta(servedBy),
  POSTHORN_SMTP_USER: z.string().min(1).optional().describe('User at the server.').meta(servedBy),
  POSTHORN_SMTP_PASSWORD: z
    .string()
    .min(1)
    .optional()
    .describe('Password of the user.')
    .meta({ ...servedBy, secret: true }),
  POSTHORN_SMTP_PASSWORD_FILE: z.string().min(1).optional().describe('File with the password, in place of the variable.').meta(servedBy),
  POSTHORN_SMTP_FROM: z
    .string()
    .max(320)
    .refine((text) => address.test(text) || named.test(text), 'must be an address, or a name and an address in angle brackets')
    .optional()
    .describe('Sender of the e-mails, such as `Posthorn <alerts@example.com>`; required with a host.')
    .meta(servedBy),
  POSTHORN_MAIL_DOMAINS: hostList
    .describe(
      'The only domains whose addresses may get e-mails, separated by commas; `*.` and the end of a name means its subdomains, as in `example.com,*.example.com`. Default: any. The same for all roles.',
    )
    .meta({ roles: ['api', 'controller', 'delivery', 'standalone'] }),
  POSTHORN_MAIL_CONFIRMATION: flag
    .default(false)
    .describe(
      '`true`: an address gets no alert and no test of an organization before its owner has confirmed it on the page behind a link that is sent to it. Needs `POSTHORN_PUBLIC_URL`. The same for all roles.',
    )
    .meta({ roles: ['api', 'controller', 'delivery', 'standalone'] }),
  POSTHORN_MAILS_PER_DAY: count(50, 1_000_000, 1000)
    .describe('E-mails of one organization in a day (UTC), alerts and tests together, one for each address. Further ones are not sent.')
    .meta(servedBy),
};

type SmtpEnvironment = z.output<z.ZodObject<typeof smtpEnvironment>>;

const ports = { starttls: 587, implicit: 465, off: 25 } as const;

export function smtpMistakes(values: SmtpEnvironment): string[] {
  const { POSTHORN_SMTP_HOST: host, POSTHORN_SMTP_USER: user, POSTHORN_SMTP_TLS: tls } = values;
  const { POSTHORN_SMTP_PASSWORD: password, POSTHORN_SMTP_PASSWORD_FILE: file } = values;
  const mistakes: string[] = [];
  if (host !== undefined && values.POSTHORN_SMTP_FROM === undefined)
    mistakes.push('POSTHORN_SMTP_FROM: is required with POSTHORN_SMTP_HOST');
  if (password !== undefined && file !== undefined)
    mistakes.push('POSTHORN_SMTP_PASSWORD_FILE: replaces POSTHORN_SMTP_PASSWORD; set one of them');
  if ((user === undefined) !== (password === undefined && file === undefined))
    mistakes.push('POSTHORN_SMTP_USER: belongs with POSTHORN_SMTP_PASSWORD or POSTHORN_SMTP_PASSWORD_FILE');
  if (user !== undefined && tls === 'off') mistakes.push('POSTHORN_SMTP_TLS: must not be off with a password, which would go out in clear');
  return mistakes;
}

export interface SmtpLogin {
  user: string;
  password: string | undefined;
  file: string | undefined;
}

export interface SmtpConfig {
  host: string;
  port: number;
  tls: 'starttls' | 'implicit' | 'off';
  /** Null: the server requires none. */
  login: SmtpLogin | null;
  from: string;
}

/** Undefined: there is no server. */
export function smtpConfig(values: SmtpEnvironment): SmtpConfig | undefined {
  const { POSTHORN_SMTP_HOST: host, POSTHORN_SMTP_FROM: from, POSTHORN_SMTP_TLS: tls, POSTHORN_SMTP_USER: user } = values;
  if (host === undefined || from === undefined) return undefined;
  const login = user === undefined ? null : { user, password: values.POSTHORN_SMTP_PASSWORD, file: values.POSTHORN_SMTP_PASSWORD_FILE };
  return { host, port: values.POSTHORN_SMTP_PORT ?? ports[tls], tls, login, from };
}

/** Reads the password file, if that is where the password is; a line break at its end does not belong to it. Throws INVALID_CONFIG when
 * it cannot be read. */
export function smtpCredentials({ user, password, file }: SmtpLogin): { user: string; password: string } {
  if (password !== undefined) return { user, password };
  if (file === undefined) return { user, password: '' };
  try {
    return { user, password: withoutLineBreak(readFileSync(file, 'utf8')) };
  } catch (cause) {
    throw new PosthornError('INVALID_CONFIG', `POSTHORN_SMTP_PASSWORD_FILE: ${file} cannot be read`, { cause });
  }
}
