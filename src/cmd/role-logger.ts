import { type DestinationStream, pino } from 'pino';
import type { Logger } from '../core/logger.ts';
import type { Config, Role } from './config.ts';

const secretFields = [
  'authorization',
  'proxy-authorization',
  'cookie',
  'set-cookie',
  'x-api-key',
  'apiKey',
  'password',
  'token',
  'secret',
  'signingSecret',
  'signingSecrets',
  'verifyToken',
  'headerValue',
  'accessToken',
  'privateKey',
  'secretAccessKey',
  'serviceAccountKey',
  'accountKey',
  'stringData',
];
const deepest = 4;

/**
 * JSON lines; what is named like a secret is never written. Default stream: standard output; in standalone
 * standard error, as standard output has lines for people.
 */
export function createLogger(role: Role, config: Pick<Config, 'logLevel'>, stream?: DestinationStream): Logger {
  const paths = secretFields.flatMap((field) =>
    Array.from({ length: deepest }, (_, depth) => `${'*.'.repeat(depth)}["${field}"]`.replace('.[', '[')),
  );
  const options = {
    level: config.logLevel,
    base: { role },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: { err: describeError },
    redact: { paths, censor: '[redacted]' },
  };
  return pino(options, stream ?? pino.destination(role === 'standalone' ? 2 : 1));
}

/** Only what is known to be harmless: clients hang requests, commands and their arguments on their errors. */
function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const code = 'code' in error && typeof error.code === 'string' ? { code: error.code } : {};
  const details = 'details' in error && error.details !== undefined ? { details: error.details } : {};
  const cause = error.cause === undefined ? {} : { cause: describeError(error.cause) };
  return { type: error.name, message: error.message, ...code, ...details, stack: error.stack, ...cause };
}
