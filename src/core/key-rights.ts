import type { Role, Scope } from './records.ts';

/** Rights of a key, and their end. */
export interface KeyRights {
  role: Role;
  scopes: readonly Scope[];
  /** Milliseconds since the epoch; null: never. */
  expiresAtMs: number | null;
}

/** A key as it is stored, and which one made it. */
export interface MadeKey extends KeyRights {
  /** SHA-256 of the key that made it; absent: a user or the key of the installation made it. */
  makerSha256?: string | undefined;
}

/** Keys above a key that made each other: more are not made, nor accepted. */
export const maxMakers = 8;

const ranks: Readonly<Record<Role, number>> = { viewer: 0, developer: 1, admin: 2 };

/** Whether `role` may do more than `other`. */
export function outranks(role: Role, other: Role): boolean {
  return ranks[role] > ranks[other];
}

/** The earlier of two ends; null: never. */
export function earlier(one: number | null, other: number | null): number | null {
  if (one === null || other === null) return one ?? other;
  return Math.min(one, other);
}

/**
 * The rights of a key within those of the keys that made it: none does more, or lives longer, than its maker does now. `find` returns the key
 * with a SHA-256. Null when a maker is gone.
 */
export async function rightsWithinMakers(
  key: MadeKey,
  find: (sha256: string) => Promise<MadeKey | null>,
): Promise<(KeyRights & { makers: number }) | null> {
  const rights = { role: key.role, scopes: key.scopes, expiresAtMs: key.expiresAtMs, makers: 0 };
  for (let { makerSha256 } = key; makerSha256 !== undefined; ) {
    const maker = rights.makers < maxMakers ? await find(makerSha256) : null;
    if (maker === null) return null;
    rights.makers += 1;
    if (outranks(rights.role, maker.role)) rights.role = maker.role;
    rights.scopes = rights.scopes.filter((scope) => maker.scopes.includes(scope));
    rights.expiresAtMs = earlier(rights.expiresAtMs, maker.expiresAtMs);
    makerSha256 = maker.makerSha256;
  }
  return rights;
}
