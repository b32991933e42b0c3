import { allCrds, crdYaml } from '../resources/custom-resource-definitions.ts';

/** All CRDs as one YAML text for `kubectl apply --server-side -f -`. */
export function crdsYaml(): string {
  return allCrds().map(crdYaml).join('---\n');
}
