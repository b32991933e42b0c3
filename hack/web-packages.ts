// The packages that are bundled into the console. package-lock.json has them as development packages, since the program itself imports none of them.
import { readFileSync } from 'node:fs';

/** What src/web/ imports. */
const imported = ['@ariakit/react', '@tanstack/react-query', '@tanstack/react-router', '@tanstack/react-virtual', 'react', 'react-dom'];

interface Locked {
  packages: Record<string, { dependencies?: Record<string, string> }>;
}

/** Names of what src/web/ imports and of all that those packages need, by package-lock.json. */
export function webPackages(): ReadonlySet<string> {
  const { packages }: Locked = JSON.parse(readFileSync(new URL('../package-lock.json', import.meta.url), 'utf8'));
  const found = new Set<string>();
  const add = (name: string): void => {
    if (found.has(name)) return;
    found.add(name);
    Object.keys(packages[`node_modules/${name}`]?.dependencies ?? {}).forEach(add);
  };
  imported.forEach(add);
  return found;
}
