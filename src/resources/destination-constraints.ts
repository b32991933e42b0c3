import type { z } from 'zod';
import { awaitedSecretRule } from './awaited-secret.ts';
import type { Rule } from './definition.ts';
import type { destinationSpec } from './destination-spec.ts';
import { forwardedHeaderRules } from './forwarded-header.ts';
import { headerTemplateRules } from './header-template-list.ts';
import { settableHeaderRule, staticHeaderRules } from './http-header.ts';

type Spec = z.output<typeof destinationSpec>;
type Http = NonNullable<Spec['http']>;
type Auth = NonNullable<Http['auth']>;
type Throttle = NonNullable<Spec['throttle']>;

/** Each type has its settings in a block of its own; with these keys unless the platform's identity is used. */
const blocks = [
  { type: 'http', block: 'http', keys: [] },
  { type: 's3', block: 's3', keys: ['accessKeyId', 'secretAccessKeySecretRef'] },
  { type: 'r2', block: 'r2', keys: ['accessKeyId', 'secretAccessKeySecretRef'] },
  { type: 'gcs', block: 'gcs', keys: ['serviceAccountKeySecretRef'] },
  { type: 'azure_blob', block: 'azureBlob', keys: ['accountKeySecretRef'] },
] as const;

const blockRules = blocks.map(
  ({ type, block }): Rule => ({
    at: '',
    cel: `(self.type == '${type}') == has(self.${block})`,
    message: `${block} is required with type ${type} and must be left out otherwise`,
    fieldPath: `.${block}`,
    check: (self: Spec) => (self.type === type) === (self[block] !== undefined),
  }),
);

const keyRules = blocks.flatMap(({ block, keys }) =>
  keys.map(
    (key): Rule => ({
      at: '',
      cel: `!has(self.${block}) || has(self.${block}.${key}) || (has(self.warehouse) && self.warehouse.identity == 'platform')`,
      message: `${key} is required unless warehouse.identity is platform`,
      fieldPath: `.${block}.${key}`,
      check: (self: Spec) => {
        const settings: Record<string, unknown> | undefined = self[block];
        return settings === undefined || settings[key] !== undefined || self.warehouse?.identity === 'platform';
      },
    }),
  ),
);

/** The fields of spec.http.auth and the authentication type that each belongs to. */
const authFields = [
  { field: 'username', types: ['basic'] },
  { field: 'passwordSecretRef', types: ['basic'] },
  { field: 'tokenSecretRef', types: ['bearer'] },
  { field: 'headerName', types: ['api_key', 'custom_header'] },
  { field: 'keySecretRef', types: ['api_key'] },
  { field: 'headerValueSecretRef', types: ['custom_header'] },
] as const;

const tlsRule: Rule = {
  at: 'http.tls',
  cel: 'has(self.clientCertificateSecretRef) == has(self.clientKeySecretRef)',
  message: 'clientCertificateSecretRef and clientKeySecretRef belong together; give both or none',
  fieldPath: '.clientKeySecretRef',
  check: (self: NonNullable<Http['tls']>) => (self.clientCertificateSecretRef === undefined) === (self.clientKeySecretRef === undefined),
};

const authRules = authFields.map(({ field, types }): Rule => {
  const allowed: readonly string[] = types;
  return {
    at: 'http.auth',
    cel: `(self.type in [${types.map((type) => `'${type}'`).join(', ')}]) == has(self.${field})`,
    message: `${field} is required with type ${types.join(' or ')} and must be left out otherwise`,
    fieldPath: `.${field}`,
    check: (self: Auth) => allowed.includes(self.type) === (self[field] !== undefined),
  };
});

const throttleNeeds = [
  { mode: 'rate', field: 'rateLimit' },
  { mode: 'rate', field: 'rateUnit' },
  { mode: 'concurrency', field: 'maxConcurrency' },
] as const;

const throttleRules = throttleNeeds.map(
  ({ mode, field }): Rule => ({
    at: 'throttle',
    cel: `self.mode != '${mode}' || has(self.${field})`,
    message: `${field} is required with mode ${mode}`,
    fieldPath: `.${field}`,
    check: (self: Throttle) => self.mode !== mode || self[field] !== undefined,
  }),
);

export const destinationRules: readonly Rule[] = [
  {
    at: 'type',
    transition: true,
    cel: 'self == oldSelf',
    message: 'cannot be changed; make another destination',
    check: (self: Spec['type'], oldSelf: Spec['type']) => self === oldSelf,
  },
  ...blockRules,
  {
    at: '',
    cel: "self.type != 'http' || !has(self.warehouse)",
    message: 'must be left out with type http',
    fieldPath: '.warehouse',
    check: (self: Spec) => self.type !== 'http' || self.warehouse === undefined,
  },
  {
    at: '',
    cel: "self.type == 'http' || !has(self.ordered) || !self.ordered",
    message: 'must not be true unless type is http: files of a warehouse have no order',
    fieldPath: '.ordered',
    check: (self: Spec) => self.type === 'http' || self.ordered !== true,
  },
  {
    at: '',
    cel: "!has(self.r2) || !has(self.warehouse) || self.warehouse.identity != 'platform'",
    message: 'cannot be platform with type r2',
    fieldPath: '.warehouse.identity',
    check: (self: Spec) => self.r2 === undefined || self.warehouse?.identity !== 'platform',
  },
  awaitedSecretRule('http'),
  ...keyRules,
  ...authRules,
  tlsRule,
  settableHeaderRule('http.auth.headerName'),
  ...staticHeaderRules('http.headers'),
  ...headerTemplateRules('http'),
  {
    at: 'http',
    cel: '!has(self.auth) || !has(self.auth.headerName) || !has(self.headerTemplates) || !self.headerTemplates.exists(one, one.name.lowerAscii() == self.auth.headerName.lowerAscii())',
    message: 'must not name the header of auth',
    fieldPath: '.headerTemplates',
    check: ({ auth, headerTemplates = [] }: Http) =>
      !headerTemplates.some(({ name }) => name.toLowerCase() === auth?.headerName?.toLowerCase()),
  },
  ...forwardedHeaderRules,
  ...throttleRules,
  {
    at: 'retryPolicy',
    cel: 'has(self.delaysMs) || self.maxDelayMs >= self.initialDelayMs',
    message: 'must be at least initialDelayMs',
    fieldPath: '.maxDelayMs',
    check: (self: NonNullable<Spec['retryPolicy']>) => self.delaysMs !== undefined || self.maxDelayMs >= self.initialDelayMs,
  },
];
