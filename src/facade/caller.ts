import type { Plan, Role, Scope } from '../core/records.ts';

/** Who sends a request: an API key, which acts in one organization. */
export interface Caller {
  apiKeyId: string;
  role: Role;
  scopes: readonly Scope[];
  /** `monthlyMessages`: that it may queue; null: any number. */
  organization: { id: string; slug: string; namespace: string; plan: Plan; monthlyMessages: number | null };
}
