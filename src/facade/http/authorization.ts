import { PosthornError } from '../../core/errors.ts';
import type { Role, Scope } from '../../core/records.ts';
import type { Caller } from './caller.ts';

const scopesOfRole: Record<Role, readonly Scope[]> = {
  admin: ['read', 'write', 'delete'],
  developer: ['read', 'write', 'delete'],
  viewer: ['read'],
};

/** The scopes that a role can have at all. */
export function grantableScopes(role: Role): readonly Scope[] {
  return scopesOfRole[role];
}

/** FORBIDDEN unless role and scopes allow it; `adminOnly` leaves only admins. */
export function authorize(caller: Caller, need: { scope: Scope; adminOnly?: boolean }): void {
  if (need.adminOnly === true && caller.role !== 'admin') throw new PosthornError('FORBIDDEN', 'This needs an API key of role admin.');
  if (!scopesOfRole[caller.role].includes(need.scope)) {
    throw new PosthornError('FORBIDDEN', `The role ${caller.role} does not allow this: it needs the scope ${need.scope}.`);
  }
  if (!caller.scopes.includes(need.scope)) throw new PosthornError('FORBIDDEN', `The API key does not have the scope ${need.scope}.`);
}
