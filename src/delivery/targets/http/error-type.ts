import type { AttemptErrorType } from '../../../data/shard/messages.ts';
import {
  BlockedAddressError,
  BlockedHostError,
  InsecureUrlError,
  MailRefusedError,
  NoPublicUrlError,
  WarehouseRefusedError,
} from '../refusals.ts';
import { maxResponseHeadersKiB } from './dispatchers.ts';
import { DeadlineError } from './http-exchange.ts';

const timeoutCodes = new Set(['UND_ERR_CONNECT_TIMEOUT', 'UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT', 'ETIMEDOUT']);
const dnsCodes = new Set(['ENOTFOUND', 'EAI_AGAIN', 'EAI_NODATA', 'EAI_NONAME', 'EAI_FAIL', 'ENODATA']);
const tlsCodes = /^(ERR_TLS|ERR_SSL|CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|HOSTNAME_MISMATCH|EPROTO$)/;

const blockedErrors = [BlockedAddressError, BlockedHostError, WarehouseRefusedError, InsecureUrlError, MailRefusedError, NoPublicUrlError];

/** The kind of failure behind an error of `exchange`; `network` for what is none of the others. */
export function errorType(error: Error): AttemptErrorType {
  if (blockedErrors.some((blocked) => error instanceof blocked)) return 'blocked';
  if (error instanceof DeadlineError) return 'timeout';
  const code = codeOf(error);
  if (timeoutCodes.has(code)) return 'timeout';
  if (dnsCodes.has(code)) return 'dns';
  if (tlsCodes.test(code)) return 'tls';
  return 'network';
}

const maxMessageLength = 500;

/** The text of an error of `exchange` for users. */
export function errorMessage(error: Error): string {
  if (codeOf(error) === 'UND_ERR_HEADERS_OVERFLOW') return `the headers of the response are larger than ${maxResponseHeadersKiB} KiB`;
  // What undici asserts of a response, such as that its status is not below 100.
  if (codeOf(error) === 'ERR_ASSERTION') return 'Response does not match the HTTP/1.1 protocol';
  return error.message.slice(0, maxMessageLength);
}

function codeOf(error: Error): string {
  return 'code' in error && typeof error.code === 'string' ? error.code : '';
}
