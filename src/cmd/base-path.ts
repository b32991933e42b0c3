import type { IncomingMessage } from 'node:http';

/**
 * Takes the base path off the target of a request that has it, so that a proxy may strip it or leave it. The rest of the text is kept: signatures cover
 * it. `basePath`: as `/posthorn`; empty: none.
 */
export function takeOffBasePath(request: IncomingMessage, basePath: string): void {
  const target = request.url ?? '';
  if (basePath === '' || !target.startsWith(basePath)) return;
  const rest = target.slice(basePath.length);
  if (rest.startsWith('/')) request.url = rest;
  else if (rest === '' || rest.startsWith('?')) request.url = `/${rest}`;
}
