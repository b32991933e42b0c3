import { PosthornError } from '../../../core/errors.ts';
import { defaultPayloadForm, needsPublicUrl, type PayloadForm } from '../../../core/payload-link.ts';
import type { Call } from '../../http/operation.ts';

/** VALIDATION_FAILED for links to payloads where the installation has no public address for them; what is stored may be sent back. */
export function refuseThinWithoutAddress(
  { services }: Pick<Call, 'services'>,
  sent: PayloadForm | undefined,
  before: PayloadForm = defaultPayloadForm,
): void {
  if (sent !== 'thin' || before === 'thin' || services.hasPublicUrl) return;
  throw new PosthornError('VALIDATION_FAILED', `payloadForm thin ${needsPublicUrl}.`, {
    details: { payloadForm: [`thin ${needsPublicUrl}`] },
  });
}

/** As it is stored with a destination. Without a default in the schema the default, sent back as it was shown, is no change. */
export function payloadFormToSpec(
  call: Pick<Call, 'services'>,
  sent: PayloadForm | undefined,
  stored: PayloadForm | undefined,
): PayloadForm | undefined {
  refuseThinWithoutAddress(call, sent, stored);
  return sent === undefined || sent === (stored ?? defaultPayloadForm) ? stored : sent;
}
