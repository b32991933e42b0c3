import { z } from 'zod';
import { parsePlainJson } from './plain-json.ts';
import type { Keyring, SealingContext } from './sealing.ts';

/** Below the public address of the installation. */
export const mailConfirmationPath = '/mail-confirmation';

/** Validity of a link, in which the address gets no other. */
export const mailConfirmationMs = 7 * 86_400_000;

/** Recipient of a link: whether this address accepts the e-mails of this organization. */
export interface ConfirmationRecipient {
  org: string;
  address: string;
}

const content = z.object({ org: z.string().min(1), address: z.string().min(1), expiresAtMs: z.number() });

/** The organization is in the token: the link does not name it. Nothing else is sealed for this kind. */
const context: SealingContext = { organization: '', kind: 'MailConfirmation', name: 'link', field: 'token' };

/** The mailbox of an address as most servers have it: capital letters and what follows `+` in the local part make no other one. */
export function mailboxOf(address: string): string {
  return address.toLowerCase().replace(/\+[^@]*(?=@)/, '');
}

/** Content of a link; URLs may hold it unescaped. */
export function mailConfirmationToken({ org, address }: ConfirmationRecipient, keyring: Keyring, nowMs: number): string {
  return keyring.seal(JSON.stringify({ org, address, expiresAtMs: nowMs + mailConfirmationMs }), context);
}

/** Null: this installation has not made the token, or it counts no more. */
export function confirmationRecipient(token: string, keyring: Keyring, nowMs: number): ConfirmationRecipient | null {
  try {
    const { org, address, expiresAtMs } = content.parse(parsePlainJson(keyring.open(token, context)));
    return nowMs < expiresAtMs ? { org, address } : null;
  } catch {
    return null;
  }
}

/** The answer of the owner of an address to the e-mails of an organization; `waiting`: none yet. */
export type RecipientState = 'confirmed' | 'declined' | 'waiting';

export interface UnconfirmedRecipient {
  address: string;
  state: Exclude<RecipientState, 'confirmed'>;
}

/** The complaint about addresses that get nothing; null: there are none. */
export function unconfirmedProblem(unconfirmed: readonly UnconfirmedRecipient[]): string | null {
  const shown = unconfirmed.slice(0, 5).map(({ address, state }) => (state === 'declined' ? `${address} (declined)` : address));
  if (shown.length === 0) return null;
  const more = unconfirmed.length - shown.length;
  return `these recipients have not confirmed their addresses and receive no e-mail: ${shown.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}
