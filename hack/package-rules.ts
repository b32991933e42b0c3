/** As npm writes it, version 3. */
export interface LockFile {
  packages: Record<string, LockedPackage>;
}

interface LockedPackage {
  version?: string;
  resolved?: string;
  integrity?: string;
  license?: string;
  dev?: boolean;
  link?: boolean;
  hasInstallScript?: boolean;
  os?: string[];
  cpu?: string[];
}

/** SPDX identifiers of permissive licences, which require no more than their notice. */
const licences = new Set([
  '0BSD',
  'Apache-2.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'BlueOak-1.0.0',
  'CC0-1.0',
  'ISC',
  'MIT',
  'MIT-0',
  'PSF-2.0',
  'Unlicense',
]);

/** Licences that packages for development may also have. No image contains those packages. */
const developmentLicences = new Set(['CC-BY-4.0', 'MPL-2.0']);

/** Packages with a reviewed install script. None runs, since .npmrc sets ignore-scripts. */
const knownInstallScripts = new Set([
  // Counts downloads for the makers of swagger-ui-dist.
  '@scarf/scarf',
  // Both fall back to a binary that the registry serves as a package.
  '@parcel/watcher',
  '@swc/core',
]);

/** Returns a sentence for each rule that a package breaks, in the order of the lock file. */
export function packageComplaints({ packages }: LockFile, npmrc: string): string[] {
  const complaints = Object.entries(packages).flatMap(([path, each]) => (path === '' ? [] : complaintsOf(path, each)));
  if (!/^ignore-scripts=true$/m.test(npmrc))
    complaints.unshift('.npmrc must say ignore-scripts=true: an install script runs with the rights of whoever installs');
  return complaints;
}

function complaintsOf(path: string, each: LockedPackage): string[] {
  const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
  const found = `${path} ${each.version ?? ''}`.trim();
  const complaints: string[] = [];
  if (each.link === true || /^(git|file|http:|https?:.*\.git)/.test(each.resolved ?? ''))
    complaints.push(`${found} does not come from a registry`);
  if (!/^sha512-/.test(each.integrity ?? '')) complaints.push(`${found} has no SHA-512 integrity`);
  if (!isAllowed(each.license ?? '', each.dev === true))
    complaints.push(`${found} has the licence ${each.license ?? '(none)'}, which hack/package-rules.ts does not list`);
  if (each.hasInstallScript === true && !knownInstallScripts.has(name))
    complaints.push(`${found} has an install script, which hack/package-rules.ts does not list`);
  if (each.dev !== true && (each.os ?? each.cpu) !== undefined)
    complaints.push(`${found} is for some platforms only, but the image has the same packages on each`);
  return complaints;
}

/** Checks an SPDX expression: of `OR` one alternative has to be allowed, of `AND` every part. AND binds tighter than OR. */
function isAllowed(expression: string, isDevelopment: boolean): boolean {
  const tokens = expression.match(/[()]|[^\s()]+/g) ?? [];
  let at = 0;
  const either = (): boolean => {
    let allowed = both();
    while (tokens[at] === 'OR') {
      at += 1;
      allowed = both() || allowed;
    }
    return allowed;
  };
  const both = (): boolean => {
    let allowed = one();
    while (tokens[at] === 'AND') {
      at += 1;
      allowed = one() && allowed;
    }
    return allowed;
  };
  const one = (): boolean => {
    const token = tokens[at] ?? '';
    at += 1;
    if (token !== '(') return licences.has(token) || (isDevelopment && developmentLicences.has(token));
    const allowed = either();
    at += 1;
    return allowed;
  };
  const allowed = either();
  return allowed && at === tokens.length;
}
