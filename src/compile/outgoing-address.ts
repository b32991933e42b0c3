import { EgressPolicy, egressRules, hostAndPort, type InstallationEgress, type RefusedAddresses } from '../core/egress-policy.ts';
import type { ObjectStoreRecord, OrganizationRecord } from '../core/records.ts';
import { type StoreEndpoints, storeUrls, withHostsOf } from '../core/store-hosts.ts';
import type { Refusal } from './compiled.ts';

/** Reason of Accepted: no worker reaches the address. */
export const addressNotAllowed = 'AddressNotAllowed';

/** Address of the requests that an object causes. */
export interface OutgoingAddress {
  /** The field of the address. */
  at: string;
  /** A URL that parses, or the store whose files are written. */
  to: string | ObjectStoreRecord;
}

/** Where the workers that serve an organization may send requests to. */
export interface WorkerEgress {
  egress: InstallationEgress;
  /** Replacements of the clouds' servers. */
  endpoints: StoreEndpoints;
  refused: RefusedAddresses;
}

/**
 * Refuses addresses that no worker reaches, whatever names are resolved to. It uses the same rules, and the same function, as a connection that a worker
 * makes; that a name has an address that is not allowed shows only there.
 */
export function outgoingRefusal(
  { at, to }: OutgoingAddress,
  { egress, endpoints, refused }: WorkerEgress,
  organization: OrganizationRecord,
): Refusal | null {
  const ofOrganization = egressRules(egress, organization);
  const rules = typeof to === 'string' ? ofOrganization : withHostsOf(to, ofOrganization, endpoints);
  const policy = new EgressPolicy(rules, refused);
  const checked = (typeof to === 'string' ? [to] : storeUrls(to, endpoints)).map((url) => {
    const { host, port } = hostAndPort(new URL(url));
    return { host, refusal: policy.refusalOf(host, port) };
  });
  const first = checked[0];
  if (first === undefined || first.refusal === null || checked.some(({ refusal }) => refusal === null)) return null;
  const why =
    first.refusal === 'unlisted'
      ? 'is not among the hosts that the organization may deliver to'
      : 'is not public, and neither allowedCidrs nor allowedHosts of the organization and the installation let deliveries reach it';
  return { reason: addressNotAllowed, message: `${at}: ${first.host} ${why}; requests to it fail with the error type blocked` };
}
