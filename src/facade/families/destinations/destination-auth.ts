import { z } from 'zod';
import { PosthornError } from '../../../core/errors.ts';
import { looksMasked, maskPattern } from '../../../core/masking.ts';
import { originOf } from '../../../core/origin.ts';
import { headerName, isSettableHeader, sendableCharacter, sendableRule } from '../../../resources/http-header.ts';
import type { PosthornObject, SpecInputOf, SpecOf } from '../../../resources/kinds.ts';
import type { Call } from '../../http/operation.ts';
import { readSecret, type SecretKeyRef } from '../../records/read-secret.ts';
import type { SentSecrets } from '../../records/secret-draft.ts';
import { redacted } from '../shared/redaction.ts';

type Http = NonNullable<SpecOf<'Destination'>['http']>;
type Auth = NonNullable<Http['auth']>;
type AuthInput = NonNullable<NonNullable<SpecInputOf<'Destination'>['http']>['auth']>;

const secretText = z.string().min(1).max(4096);
/** Secret that is sent in a header, without a line break at its end; or the mask of any stored value. */
const headerSecret = secretText.regex(new RegExp(String.raw`^(?:${sendableCharacter}+[\r\n]*|${maskPattern})$`, 'u'), sendableRule);

export const authType = z.enum(['none', 'basic', 'bearer', 'api_key', 'custom_header']).describe('How deliveries authenticate at the URL.');

/** The union of the fields of all auth types; `shapes` has those of each. */
export const authConfig = z
  .strictObject({
    username: z.string().min(1).max(256).optional().describe('With authType basic.'),
    password: secretText.optional().describe('With authType basic.'),
    token: headerSecret.optional().describe('With authType bearer.'),
    headerName: headerName
      .refine(isSettableHeader, 'is a header that Posthorn, the connection or a browser alone sets: give another one')
      .optional()
      .describe('With authType api_key and custom_header.'),
    key: headerSecret.optional().describe('With authType api_key.'),
    headerValue: headerSecret.optional().describe('With authType custom_header.'),
  })
  .meta({
    id: 'AuthConfig',
    description: 'Its shape depends on authType; null with none. Secrets are masked on read; a mask sent back keeps what is stored.',
  });
export type AuthConfig = z.output<typeof authConfig>;

type SecretField = 'password' | 'token' | 'key' | 'headerValue';

/** Fields of each type: one that may be shown, if any, and the secret. */
const shapes: Record<Exclude<Auth['type'], 'none'>, { plain: 'username' | 'headerName' | null; secret: SecretField }> = {
  basic: { plain: 'username', secret: 'password' },
  bearer: { plain: null, secret: 'token' },
  api_key: { plain: 'headerName', secret: 'key' },
  custom_header: { plain: 'headerName', secret: 'headerValue' },
};

const refOf = { password: 'passwordSecretRef', token: 'tokenSecretRef', key: 'keySecretRef', headerValue: 'headerValueSecretRef' } as const;

/** `show` makes of a secret what the record shows of it. */
export async function authToRecord(
  auth: Auth | undefined,
  show: (ref: SecretKeyRef) => Promise<string>,
): Promise<{ authType: Auth['type']; authConfig: AuthConfig | null }> {
  if (auth === undefined || auth.type === 'none') return { authType: 'none', authConfig: null };
  const { plain, secret } = shapes[auth.type];
  const ref = auth[refOf[secret]];
  return {
    authType: auth.type,
    authConfig: {
      ...(plain === null ? {} : { [plain]: auth[plain] }),
      ...(ref === undefined ? {} : { [secret]: await show(ref) }),
    },
  };
}

/** The `auth` of a spec; VALIDATION_FAILED when authConfig does not fit authType. What is not sent of the same type stays. */
export async function authToSpec(
  sent: { authType?: Auth['type']; authConfig?: AuthConfig | null },
  current: Auth | undefined,
  secrets: SentSecrets,
): Promise<AuthInput | undefined> {
  if (sent.authType === undefined && sent.authConfig === undefined) return current;
  const type = sent.authType ?? current?.type ?? 'none';
  const config = sent.authConfig ?? {};
  if (type === 'none') {
    if (Object.keys(config).length > 0) throw new PosthornError('VALIDATION_FAILED', 'authConfig needs an authType other than none.');
    return current === undefined ? undefined : { type };
  }
  if (sent.authConfig === null)
    throw new PosthornError('VALIDATION_FAILED', `authConfig cannot be null with authType ${type}; authType none removes it.`);
  const { plain, secret } = shapes[type];
  const misfit = Object.keys(config).find((field) => field !== plain && field !== secret);
  if (misfit !== undefined) throw new PosthornError('VALIDATION_FAILED', `authConfig.${misfit} does not belong to authType ${type}.`);
  const kept = current?.type === type ? current : undefined;
  return {
    type,
    ...(plain === null ? {} : { [plain]: config[plain] ?? kept?.[plain] ?? missing(plain) }),
    [refOf[secret]]: await secretRef(config[secret], kept?.[refOf[secret]], secret, secrets),
  };
}

function secretRef(
  value: string | undefined,
  current: SecretKeyRef | undefined,
  field: SecretField,
  secrets: SentSecrets,
): Promise<SecretKeyRef> | SecretKeyRef {
  return value === undefined ? (current ?? missing(field)) : secrets.put(field, value, current, { path: `authConfig.${field}` });
}

function missing(field: string): never {
  throw new PosthornError('VALIDATION_FAILED', `authConfig.${field} is required with this authType.`);
}

/** Whether the stored credential would be sent to another origin although the caller did not send it again: a caller who cannot read a credential
 * must not receive it at a host of their own. */
export function carriesCredentialElsewhere(
  current: Http | undefined,
  url: string,
  sent: AuthConfig | null | undefined,
  auth: AuthInput | undefined,
): boolean {
  if (current?.auth === undefined || current.auth.type === 'none' || auth?.type !== current.auth.type) return false;
  if (originOf(current.url) === originOf(url)) return false;
  const value = sent?.[shapes[current.auth.type].secret];
  return value === undefined || looksMasked(value);
}

/** Whether the destination was imported without its credential and has not been given one since. */
export async function lacksCredential(auth: AuthInput | undefined, object: PosthornObject<'Destination'>, call: Call): Promise<boolean> {
  const current = object.spec.http?.auth;
  if (auth === undefined || auth.type === undefined || auth.type === 'none' || current?.type !== auth.type) return false;
  const { plain, secret } = shapes[auth.type];
  if (plain !== null && auth[plain] === redacted) return true;
  const [ref, before] = [auth[refOf[secret]], current[refOf[secret]]];
  if (ref === undefined || ref.name !== before?.name || ref.key !== before.key) return false;
  return (await readSecret(call, object, ref)) === redacted;
}

/** The same of one that is sent `config`, without a mask, of the type that it has. */
export async function keepsRedacted(config: AuthConfig, object: PosthornObject<'Destination'>, call: Call): Promise<boolean> {
  const current = object.spec.http?.auth;
  if (current === undefined || current.type === 'none') return false;
  const { secret } = shapes[current.type];
  const auth = { ...current, ...plainFields(config), ...(config[secret] !== undefined && { [refOf[secret]]: undefined }) };
  return lacksCredential(auth, object, call);
}

/** An authConfig for the type without its credential. */
export function redactedConfig(type: Exclude<Auth['type'], 'none'>, known: AuthConfig = {}): AuthConfig {
  const { plain, secret } = shapes[type];
  return { ...(plain === null ? {} : { [plain]: known[plain] ?? redacted }), [secret]: redacted };
}

/** Returns the fields of the config that are not credentials. */
export function plainFields({ username, headerName: name }: AuthConfig): AuthConfig {
  return { ...(username !== undefined && { username }), ...(name !== undefined && { headerName: name }) };
}
