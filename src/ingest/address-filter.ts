import { AddressList } from '../core/address-list.ts';
import type { SourceRecord } from '../core/records.ts';

/** Whether an address may send to the source; null when every one may. */
export function addressFilter({ ipFilter }: SourceRecord): ((address: string) => boolean) | null {
  if (ipFilter === undefined) return null;
  const allowed = ipFilter.allow === null ? null : new AddressList(ipFilter.allow);
  const denied = new AddressList(ipFilter.deny);
  return (address) => (allowed === null || allowed.has(address)) && !denied.has(address);
}
