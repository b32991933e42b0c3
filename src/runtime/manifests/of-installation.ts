import type { ApplyObject } from '../../store/store.ts';
import type { ManifestError } from './parse.ts';

/** Parts the manifests from the Organizations that name another installation: who applied these would wait in vain for somebody to serve them. */
export function ofInstallation(objects: readonly ApplyObject[], installation: string): { own: ApplyObject[]; refused: ManifestError[] } {
  const own: ApplyObject[] = [];
  const refused: ManifestError[] = [];
  for (const object of objects) {
    const named = object.kind === 'Organization' ? Object(object.spec).installation : undefined;
    if (named === undefined || named === installation) own.push(object);
    else
      refused.push({
        file: `${object.kind} ${object.metadata.name}`,
        message: `spec.installation is ${named}: only ${installation} is served here`,
      });
  }
  return { own, refused };
}
