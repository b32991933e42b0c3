import { needsPublicUrl, type PayloadForm } from '../core/payload-link.ts';
import type { Refusal } from './compiled.ts';

/** Refuses links to payloads where the installation has no public address for them. `field`: such as `spec.payloadForm`. */
export function payloadFormRefusal(form: PayloadForm | undefined, field: string, hasPublicUrl: boolean): Refusal | null {
  if (form !== 'thin' || hasPublicUrl) return null;
  return {
    reason: 'NoPublicUrl',
    message: `${field} thin ${needsPublicUrl}`,
  };
}
