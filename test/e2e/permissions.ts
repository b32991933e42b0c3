import { z } from 'zod';
import { nameOf, organizationNamespaces, organizationRole } from '../support/audit-log.ts';
import { helm, type Manifest, manifests, template } from '../support/helm.ts';

const system = 'posthorn-system';

const rules = z.array(
  z.strictObject({
    apiGroups: z.array(z.string()),
    resources: z.array(z.string()),
    resourceNames: z.array(z.string()).optional(),
    verbs: z.array(z.string()),
  }),
);
const role = z.looseObject({ rules });
const binding = z.looseObject({
  metadata: z.looseObject({ namespace: z.string().optional() }),
  roleRef: z.looseObject({ kind: z.string(), name: z.string() }),
  subjects: z.array(z.looseObject({ kind: z.string(), name: z.string() })),
});

/**
 * What the chart, as it is installed, grants its service accounts, the one of the job before an uninstallation included, also where that
 * removes the CustomResourceDefinitions.
 */
export async function grantedByChart(): Promise<Set<string>> {
  const installed = await Promise.all(['manifest', 'hooks'].map((part) => helm('get', part, 'posthorn', '--namespace', system)));
  const leavingNothing = await template('--set', 'crds.keep=false');
  return new Set(
    [installed.flatMap(manifests), manifests(leavingNothing)].flatMap((objects) => [...granted(objects), ...boundLater(objects)]),
  );
}

/** What the controller grants where organizations live. */
function boundLater(objects: readonly Manifest[]): string[] {
  return objects
    .filter(({ kind, metadata }) => kind === 'ClusterRole' && organizationRole.test(metadata.name))
    .flatMap((bound) => permissions(bound.metadata.name.replace('-organization-', '-'), bound, { namespace: organizationNamespaces }));
}

/** No request has the verb: without it there would be none for the bindings of these roles either. */
const isAskedFor = (verb: string): boolean => verb !== 'bind';

function permissions(account: string, bound: Manifest | undefined, where: { namespace?: string }): string[] {
  return role.parse(bound).rules.flatMap(({ apiGroups, resources, verbs, resourceNames }) => {
    const names = resourceNames?.map((name) => ({ name })) ?? [{}];
    return apiGroups.flatMap((group) =>
      resources.flatMap((resource) =>
        verbs.filter(isAskedFor).flatMap((verb) => names.map((name) => nameOf({ account, verb, group, resource, ...name, ...where }))),
      ),
    );
  });
}

function granted(objects: readonly Manifest[]): string[] {
  return objects
    .filter(({ kind }) => kind === 'RoleBinding' || kind === 'ClusterRoleBinding')
    .flatMap((object) => {
      const { metadata, roleRef, subjects } = binding.parse(object);
      const bound = objects.find(({ kind, metadata: { name } }) => kind === roleRef.kind && name === roleRef.name);
      const where = metadata.namespace === undefined ? {} : { namespace: metadata.namespace };
      return subjects.filter(({ kind }) => kind === 'ServiceAccount').flatMap(({ name: account }) => permissions(account, bound, where));
    });
}
