import { z } from 'zod';
import type { Rule } from './definition.ts';

/** Field of what has a signing secret by choice. */
export const awaitsSigningSecret = z
  .boolean()
  .optional()
  .describe(
    'True of what was imported without its signing secret: it is not enabled before it has one, or this is removed. Default: false.',
  );

/** `block`: in which the field and `signingSecretRef` are; absent: the spec itself. */
export function awaitedSecretRule(block?: 'http'): Rule {
  const [place, path] = block === undefined ? ['self', ''] : [`self.${block}`, `.${block}`];
  const isThere = block === undefined ? '' : `!has(${place}) || `;
  return {
    at: '',
    cel: `${isThere}!has(${place}.awaitsSigningSecret) || !${place}.awaitsSigningSecret || has(${place}.signingSecretRef) || !self.enabled`,
    message: 'must be removed, or signingSecretRef be set, before it is enabled: its import left out the signing secret',
    fieldPath: `${path}.awaitsSigningSecret`,
    check: (self: Settings & { enabled: boolean; http?: Settings }) => {
      const settings = block === undefined ? self : self[block];
      return settings?.awaitsSigningSecret !== true || settings.signingSecretRef !== undefined || !self.enabled;
    },
  };
}

interface Settings {
  awaitsSigningSecret?: boolean | undefined;
  signingSecretRef?: unknown;
}
