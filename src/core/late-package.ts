import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

/** A package that is loaded when it is first asked for: what few need does not take memory in every process. */
export function latePackage<T>(name: string): () => T {
  let loaded: T | undefined;
  return () => (loaded ??= require(name) as T);
}
