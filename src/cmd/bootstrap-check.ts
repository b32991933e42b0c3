import { defaultInstallation } from '../core/default-installation.ts';
import { admit } from '../resources/admission.ts';
import { posthornKinds } from '../resources/kinds.ts';
import { ofInstallation } from '../runtime/manifests/of-installation.ts';
import type { ParsedManifests } from '../runtime/manifests/parse.ts';

/** Where the manifests of a bootstrap are. */
export interface BootstrapSource {
  directory: string;
  /** Namespace of namespaced objects that name none. */
  namespace: string;
  /** Installation of Organizations that name none; they may name no other. */
  installation: string;
}

/** The manifests of what an installation must have. The loader of YAML is loaded only when there are any. */
export async function readBootstrap({ directory, namespace, installation }: BootstrapSource): Promise<ParsedManifests> {
  const { readManifests } = await import('../runtime/manifests/read-directory.ts');
  const { objects, errors } = await readManifests(directory, { kinds: posthornKinds, namespace });
  const { own, refused } = ofInstallation(objects, installation);
  // The kinds of an earlier release do not have the field.
  const isNamed = installation !== defaultInstallation;
  const named = own.map((object) =>
    object.kind === 'Organization' && isNamed ? { ...object, spec: { ...Object(object.spec), installation } } : object,
  );
  return { objects: named, errors: [...errors, ...refused] };
}

/**
 * Errors of the manifests by the rules of their kinds. Needs no API server, so that a controller reports them before it
 * leads: a rollout with values that are refused stops there, and the earlier controllers stay.
 */
export async function bootstrapComplaints(source: BootstrapSource): Promise<string[]> {
  let manifests: ParsedManifests;
  try {
    manifests = await readBootstrap(source);
  } catch (error) {
    return [`${source.directory}: ${error instanceof Error ? error.message : String(error)}`];
  }
  const unreadable = manifests.errors.map(({ file, message }) => `${file}: ${message}`);
  const refused = manifests.objects.flatMap((object) => {
    const { causes } = admit(object.kind, object);
    return causes === undefined
      ? []
      : [`${object.kind} ${object.metadata.name}: ${causes.map(({ field, message }) => `${field}: ${message}`).join('; ')}`];
  });
  return [...unreadable, ...refused];
}
