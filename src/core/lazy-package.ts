import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

/** A package that is loaded at its first use: rarely needed packages take no memory in other processes. */
export function lazyPackage<T>(name: string): () => T {
  let loaded: T | undefined;
  return () => (loaded ??= require(name) as T);
}
