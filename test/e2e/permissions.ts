import { z } from 'zod';
import { permission } from '../support/audit-log.ts';
import { helm, manifests } from '../support/helm.ts';

const system = 'posthorn-system';

const rules = z.array(z.object({ apiGroups: z.array(z.string()), resources: z.array(z.string()), verbs: z.array(z.string()) }));
const role = z.looseObject({ rules });
const binding = z.looseObject({
  roleRef: z.looseObject({ kind: z.string(), name: z.string() }),
  subjects: z.array(z.looseObject({ kind: z.string(), name: z.string() })),
});

/** What the chart, as it is installed, grants its service accounts, the one of the job before an uninstallation included. */
export async function grantedByChart(): Promise<Set<string>> {
  const parts = await Promise.all(['manifest', 'hooks'].map((part) => helm('get', part, 'posthorn', '--namespace', system)));
  const objects = parts.flatMap(manifests);
  const granted = new Set<string>();
  for (const object of objects.filter(({ kind }) => kind === 'RoleBinding' || kind === 'ClusterRoleBinding')) {
    const { roleRef, subjects } = binding.parse(object);
    const bound = objects.find(({ kind, metadata }) => kind === roleRef.kind && metadata.name === roleRef.name);
    for (const { name: account } of subjects.filter(({ kind }) => kind === 'ServiceAccount'))
      for (const { apiGroups, resources, verbs } of role.parse(bound).rules)
        for (const group of apiGroups)
          for (const resource of resources) for (const verb of verbs) granted.add(permission(account, verb, group, resource));
  }
  return granted;
}
