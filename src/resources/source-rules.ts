import type { Rule } from './definition.ts';

/** What the rules of a Source look at. */
interface Spec {
  provider: string;
  verification?: unknown;
  signingSecretRef?: unknown;
  rejectInvalidSignatures?: boolean;
}

export const sourceRules: readonly Rule[] = [
  {
    at: '',
    cel: '!(has(self.rejectInvalidSignatures) && self.rejectInvalidSignatures) || has(self.signingSecretRef)',
    message: 'needs a signingSecretRef when it is true',
    fieldPath: '.rejectInvalidSignatures',
    check: (self: Spec) => self.rejectInvalidSignatures !== true || self.signingSecretRef !== undefined,
  },
  {
    at: '',
    cel: "(self.provider == 'custom') == has(self.verification)",
    message: 'is required with provider custom and must be left out otherwise',
    fieldPath: '.verification',
    check: (self: Spec) => (self.provider === 'custom') === (self.verification !== undefined),
  },
];
