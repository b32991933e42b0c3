import { readFileSync } from 'node:fs';
import { parseAllDocuments } from 'yaml';
import { z } from 'zod';
import type { ControlPlane } from './control-plane.ts';
import { eventually } from './eventually.ts';

const object = z.looseObject({
  apiVersion: z.string(),
  kind: z.string(),
  metadata: z.looseObject({ name: z.string(), namespace: z.string().optional() }),
  rules: z
    .array(
      z.looseObject({
        apiGroups: z.array(z.string()),
        resources: z.array(z.string()),
        resourceNames: z.array(z.string()).optional(),
        verbs: z.array(z.string()),
      }),
    )
    .optional(),
});
const tokenRequest = z.looseObject({ status: z.looseObject({ token: z.string() }) });
const review = z.looseObject({ status: z.looseObject({ allowed: z.boolean() }) });

/**
 * A token of a role's service account, with the permissions of config/rbac and no others. The namespace posthorn-system must be there. Rights
 * where organizations live a controller of the installation `posthorn` has to grant.
 */
export async function tokenOfRole(plane: ControlPlane, role: 'controller' | 'api'): Promise<string> {
  await applyObjects(plane, `rbac/organization-${role}.yaml`);
  return await tokenOf(plane, `rbac/${role}.yaml`, `posthorn-${role}`);
}

/** Makes what a file of `config` holds for a Job, such as `rekey/rekey.yaml`, in a namespace posthorn-system; answers a token of its service account. */
export async function tokenOfJob(plane: ControlPlane, file: string, account: string): Promise<string> {
  await plane.request('POST', '/api/v1/namespaces', { metadata: { name: 'posthorn-system' } });
  return await tokenOf(plane, file, account);
}

async function applyObjects(plane: ControlPlane, file: string): Promise<z.output<typeof object>[]> {
  const text = readFileSync(new URL(`../../config/${file}`, import.meta.url), 'utf8');
  const objects = parseAllDocuments(text).map((document) => object.parse(document.toJS()));
  for (const each of objects) {
    const { apiVersion, kind, metadata } = each;
    const root = apiVersion === 'v1' ? '/api/v1' : `/apis/${apiVersion}`;
    const within = metadata.namespace === undefined ? '' : `/namespaces/${metadata.namespace}`;
    const path = `${root}${within}/${kind.toLowerCase()}s/${metadata.name}?fieldManager=test&force=true`;
    await plane.request('PATCH', path, each, 'application/apply-patch+yaml');
  }
  return objects;
}

/** Applies the file; returns a token of an hour. The API server has the permissions when it resolves. */
async function tokenOf(plane: ControlPlane, file: string, account: string): Promise<string> {
  const objects = await applyObjects(plane, file);
  const user = `system:serviceaccount:posthorn-system:${account}`;
  for (const { metadata, rules: [rule] = [] } of objects) {
    if (rule === undefined) continue;
    const [group, resource, name, verb] = [rule.apiGroups[0], rule.resources[0], rule.resourceNames?.[0], rule.verbs[0]];
    const resourceAttributes = { namespace: metadata.namespace, group, resource, name, verb };
    const question = { apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview', spec: { user, resourceAttributes } };
    await eventually(`the permissions of ${metadata.name}`, 30_000, async () => {
      const answer = await plane.request('POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews', question);
      return review.parse(answer).status.allowed;
    });
  }
  const path = `/api/v1/namespaces/posthorn-system/serviceaccounts/${account}/token`;
  const request = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 3600 } };
  return tokenRequest.parse(await plane.request('POST', path, request)).status.token;
}
