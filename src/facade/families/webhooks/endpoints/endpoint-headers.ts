import { carriesCredential } from '../../../../core/credential-names.ts';
import { PosthornError } from '../../../../core/errors.ts';
import { looksMasked, masked, maskedUnread, meansStored } from '../../../../core/masking.ts';
import type { HeaderRecord } from '../../../../core/records.ts';
import { webhookHeaderSealingContext } from '../../../../core/sealing-contexts.ts';
import type { WebhookEndpoint } from '../../../../data/webhooks/webhooks.ts';
import type { Call } from '../../../http/operation.ts';
import type { StaticHeader } from '../../shared/static-headers.ts';

type Services = Pick<Call, 'services'>;
type Owner = Pick<WebhookEndpoint, 'id' | 'org'>;

/** The headers of an endpoint as answers show them, credentials masked. */
export function shownEndpointHeaders(call: Services, endpoint: WebhookEndpoint): StaticHeader[] {
  return endpoint.headers.map((header) => {
    const { name } = header;
    const value = openedHeader(call, endpoint, header);
    if (value === null) return { name, value: maskedUnread };
    return { name, value: header.sealed !== undefined || carriesCredential({ name, value }) ? masked(value) : value };
  });
}

/**
 * The headers that the store keeps for sent ones, credentials sealed: those of `stored` for their masks, and as they are where the values are the same.
 * VALIDATION_FAILED for the mask of something else.
 */
export function sealedEndpointHeaders(
  call: Services,
  owner: Owner,
  sent: readonly StaticHeader[],
  stored: readonly HeaderRecord[] = [],
): HeaderRecord[] {
  return sent.map(({ name, value }) => {
    const before = stored.find((header) => header.name.toLowerCase() === name.toLowerCase());
    const known = before === undefined ? null : openedHeader(call, owner, before);
    const isSecret = before?.sealed !== undefined || carriesCredential({ name, value: known ?? '' });
    const isKept = isSecret && meansStored(value, known);
    if (isKept && before?.sealed !== undefined) return { name, sealed: before.sealed };
    if (!isKept && looksMasked(value)) throw foreignMask(name);
    const plain = isKept && known !== null ? known : value;
    if (before?.sealed === undefined && !carriesCredential({ name, value: plain })) return { name, value: plain };
    return { name, sealed: call.services.keyring.seal(plain, webhookHeaderSealingContext(owner.org, owner.id)) };
  });
}

/** Null when it does not open. */
function openedHeader({ services }: Services, { org, id }: Owner, { value, sealed }: HeaderRecord): string | null {
  if (sealed === undefined) return value;
  try {
    return services.keyring.open(sealed, webhookHeaderSealingContext(org, id));
  } catch {
    return null;
  }
}

function foreignMask(name: string): PosthornError {
  const message = `headers.${name} is a masked value, but not that of the stored header: send the value itself.`;
  return new PosthornError('VALIDATION_FAILED', message);
}
