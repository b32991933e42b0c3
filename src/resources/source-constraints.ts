import { ownProvider, providersWithoutDeliveryId } from '../core/providers/providers.ts';
import { awaitedSecretRule } from './awaited-secret.ts';
import { cidrRule } from './cidr.ts';
import type { Rule } from './definition.ts';

/** The input of the rules of a Source. */
interface Spec {
  provider: string;
  verification?: unknown;
  signingSecretRef?: unknown;
  rotation?: unknown;
  rejectInvalidSignatures?: boolean;
  handshake?: { type: string; verifyTokenSecretRef?: unknown };
  dedup?: { strategy: string; header?: string };
}

interface IpFilter {
  mode: string;
  allowlist?: readonly string[];
}

const withoutDeliveryId = providersWithoutDeliveryId.map((name) => `'${name}'`).join(', ');

export const sourceRules: readonly Rule[] = [
  ...(['signingSecretRef', 'handshake'] as const).map((field) => ({
    at: '',
    cel: `self.provider != '${ownProvider}' || !has(self.${field})`,
    message: `must be left out with provider ${ownProvider}`,
    fieldPath: `.${field}`,
    check: (self: Spec) => self.provider !== ownProvider || self[field] === undefined,
  })),
  {
    at: '',
    cel: '!(has(self.rejectInvalidSignatures) && self.rejectInvalidSignatures) || has(self.signingSecretRef)',
    message: 'needs a signingSecretRef when it is true',
    fieldPath: '.rejectInvalidSignatures',
    check: (self: Spec) => self.rejectInvalidSignatures !== true || self.signingSecretRef !== undefined,
  },
  awaitedSecretRule(),
  {
    at: '',
    cel: '!has(self.rotation) || has(self.signingSecretRef)',
    message: 'needs a signingSecretRef',
    fieldPath: '.rotation',
    check: (self: Spec) => self.rotation === undefined || self.signingSecretRef !== undefined,
  },
  {
    at: '',
    cel: `!has(self.dedup) || self.dedup.strategy != 'provider_id' || has(self.dedup.header) || !(self.provider in [${withoutDeliveryId}])`,
    message: 'is required with strategy provider_id, because the provider has no delivery id of its own',
    fieldPath: '.dedup.header',
    check: ({ provider, dedup }: Spec) =>
      dedup?.strategy !== 'provider_id' || dedup.header !== undefined || !providersWithoutDeliveryId.includes(provider),
  },
  {
    at: '',
    cel: "!has(self.handshake) || self.handshake.type != 'crc_token' || has(self.signingSecretRef)",
    message: 'needs a signingSecretRef when it is crc_token',
    fieldPath: '.handshake.type',
    check: ({ handshake, signingSecretRef }: Spec) => handshake?.type !== 'crc_token' || signingSecretRef !== undefined,
  },
  {
    at: 'handshake',
    cel: "!has(self.verifyTokenSecretRef) || self.type == 'hub_challenge'",
    message: 'must be left out unless type is hub_challenge',
    fieldPath: '.verifyTokenSecretRef',
    check: ({ type, verifyTokenSecretRef }: NonNullable<Spec['handshake']>) =>
      verifyTokenSecretRef === undefined || type === 'hub_challenge',
  },
  {
    at: 'ipFilter',
    cel: "!(self.mode in ['allowlist', 'both']) || (has(self.allowlist) && size(self.allowlist) > 0)",
    message: 'must name a network with mode allowlist or both',
    fieldPath: '.allowlist',
    check: ({ mode, allowlist = [] }: IpFilter) => !['allowlist', 'both'].includes(mode) || allowlist.length > 0,
  },
  cidrRule('ipFilter.allowlist'),
  cidrRule('ipFilter.denylist'),
  {
    at: '',
    cel: "(self.provider == 'custom') == has(self.verification)",
    message: 'is required with provider custom and must be left out otherwise',
    fieldPath: '.verification',
    check: (self: Spec) => (self.provider === 'custom') === (self.verification !== undefined),
  },
];
