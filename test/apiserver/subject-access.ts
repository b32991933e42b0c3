import type { ControlPlane } from '../support/control-plane.ts';

/** Whether the API server allows the user this now: it applies a binding or a role a moment after it is made, changed or deleted. */
export async function isAllowed(
  plane: ControlPlane,
  user: string,
  resourceAttributes: { verb: string; resource: string; namespace: string; group?: string },
): Promise<boolean> {
  const review = { apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview', spec: { user, resourceAttributes } };
  // biome-ignore lint/suspicious/noExplicitAny: an object as the API server gives it
  const { status }: any = await plane.request('POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews', review);
  return status.allowed;
}
