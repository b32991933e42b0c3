import type { OrganizationRecord, Plan, Role, Scope } from '../../core/records.ts';
import type { KubernetesUser } from '../../store/kubernetes/kubernetes-access.ts';

export interface ApiKeyCredential {
  type: 'apiKey';
  id: string;
  name: string;
  sha256: string;
  /** Milliseconds since the epoch; null: never. */
  expiresAtMs: number | null;
  /** Length of its chain of issuers: who made it, who made that one, and so on. */
  makers: number;
}

/** The authenticated sender of a request, acting in one organization: an API key, a user or service account of Kubernetes, or a person at the machine that runs standalone. */
export interface Caller {
  /** `id` of a user represents its name, which may be any text. */
  credential:
    | ApiKeyCredential
    | { type: 'user'; id: string; name: string; user: KubernetesUser }
    | { type: 'loopback'; id: string; name: string };
  role: Role;
  scopes: readonly Scope[];
  /** `monthlyMessages`: that it may queue; `objectsPerKind`: resources of each kind that it may have; null: any number. */
  organization: { id: string; slug: string; namespace: string; plan: Plan; monthlyMessages: number | null; objectsPerKind: number | null };
}

export function callerOrganization({
  id,
  slug,
  namespace,
  plan,
  monthlyMessages,
  objectsPerKind,
}: OrganizationRecord): Caller['organization'] {
  return { id, slug, namespace, plan, monthlyMessages: monthlyMessages ?? null, objectsPerKind: objectsPerKind ?? null };
}

/** How the log names the credential. */
export function credentialFields({ credential }: Caller): { apiKeyId: string } | { userName: string } {
  return credential.type === 'apiKey' ? { apiKeyId: credential.id } : { userName: credential.name };
}
