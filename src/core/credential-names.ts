import { ofKnownNames } from './known-names.ts';

/** Words at the end of a name that mark its value as a credential, whatever separates them from the rest. */
export const credentialEndings: readonly string[] = [
  ...['authorization', 'cookie', 'cookie2', 'credential', 'credentials', 'jwt', 'jwtassertion', 'bearer', 'passphrase', 'passwd'],
  ...['password', 'secret', 'sessionid', 'token', 'accesskey', 'apikey', 'secretkey', 'csrf', 'xsrf', 'accesssignature', 'accesscode'],
];
/** The same of words that match alone only. */
export const credentialWords: ReadonlySet<string> = new Set(['auth', 'key', 'otp', 'pass', 'pin', 'pwd', 'session', 'sid']);
/** Words before `key` or `token` that mark it as no credential: it identifies a message, or controls how that is processed. */
export const harmlessOwners: readonly string[] = [
  ...['idempotency', 'idempotence', 'deduplication', 'dedup', 'partition', 'routing', 'cache', 'surrogate', 'public', 'sort', 'ordering'],
  ...['event', 'entity', 'object', 'message', 'correlation', 'trace', 'websocket', 'continuation', 'sync', 'page', 'next', 'cancellation'],
];
/** Names that end like a credential and are none: those, and what signs a message. */
const harmless = new RegExp(`(^|-)signature-jwt$|(^|-)(${harmlessOwners.join('|')})-?(key|token)$`);

/** Whether the value of a header that is always sent is a credential: by its name, unless it is empty. */
export function carriesCredential({ name, value }: { name: string; value: string }): boolean {
  return value !== '' && isCredentialHeader(name);
}

/**
 * Whether the value of a header with this name is a credential: `authorization`, `x-api-key`, `private-token`, `x-webhook-secret`. Any
 * case; `_` counts as `-`. A signature is not a credential, because it proves one request. A shared access signature is one, because it proves any request.
 */
export const isCredentialHeader = ofKnownNames(isCredential);

/** The same of a parameter in the query of a URL, where `sig` and `code` are credentials, too. */
export function isCredentialParameter(name: string): boolean {
  return isCredential(name) || /(^|[-_.])(sig|signature|code|hmac)$/i.test(name);
}

/**
 * The same of a parameter in the query of a sender's request. `code` counts alone, because `country_code` and `error_code` are data; an id such as Twilio's
 * `MessageSid` is no session. `token[]` and `auth[key]` are read as `token` and `auth-key`.
 */
export const isSentCredentialParameter = ofKnownNames((sent) => {
  const name = withoutIndexes(sent);
  if (/[a-z0-9]Sid$/.test(name)) return false;
  return isCredential(name) || /(?:^|[^a-z0-9])(?:sig|signature|hmac)$|^code$/i.test(name);
});

/** Without the brackets of a list at its end, and without the last bracket of a member. */
function withoutIndexes(name: string): string {
  let end = name.length;
  for (;;) {
    let at = end - 1;
    if (name[at] !== ']') break;
    while (/[0-9]/.test(name[at - 1] ?? '')) at--;
    if (name[at - 1] !== '[') break;
    end = at - 1;
  }
  while (name[end - 1] === ']') end--;
  return name.slice(0, end);
}

function isCredential(name: string): boolean {
  const parts = partsOf(name.replace(/([a-z0-9])([A-Z])/g, '$1-$2'));
  // `WebSocket` is one word, `routingKey` are two.
  if (harmless.test(parts.join('-')) || harmless.test(partsOf(name).join('-'))) return false;
  const whole = parts.join('');
  return credentialWords.has(parts.at(-1) ?? '') || credentialEndings.some((ending) => whole.endsWith(ending));
}

function partsOf(name: string): string[] {
  return name.toLowerCase().split(/[^a-z0-9]+/);
}
