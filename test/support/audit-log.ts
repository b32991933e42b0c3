import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { version } from '../../src/cmd/version.ts';

const system = 'posthorn-system';
const accountPrefix = `system:serviceaccount:${system}:`;

const auditEvent = z.looseObject({
  verb: z.string(),
  requestURI: z.string(),
  user: z.looseObject({ username: z.string() }),
  userAgent: z.string().optional(),
  objectRef: z
    .looseObject({ resource: z.string().optional(), subresource: z.string().optional(), apiGroup: z.string().optional() })
    .optional(),
  responseStatus: z.looseObject({ code: z.int(), message: z.string().optional() }).optional(),
});

/** What admission refuses whatever one's rights are: in a namespace that is going, or beyond a quota. */
const refusedByAdmission = /because it is being terminated|exceeded quota|status unknown for quota/;

interface Asked {
  /**
   * `posthorn-api patch secrets`: service account, verb, resource with its group. Requests that were refused are left out, and those of an
   * earlier release.
   */
  used: Set<string>;
  /** Requests that were refused for want of rights. */
  forbidden: string[];
}

/** What the service accounts of the installation have asked the API server for, by its audit log. */
export function readAuditLog(file: string): Asked {
  const asked: Asked = { used: new Set(), forbidden: [] };
  // Helm takes the permissions away while the pods of the API still end.
  let isBeingUninstalled = false;
  for (const line of readFileSync(file, 'utf8').split('\n')) {
    // The last line may be half written.
    if (!line.endsWith('}')) continue;
    const { verb, requestURI, user, userAgent, objectRef, responseStatus } = auditEvent.parse(JSON.parse(line));
    if (!user.username.startsWith(accountPrefix)) continue;
    const account = user.username.slice(accountPrefix.length);
    const { code = 0, message = '' } = responseStatus ?? {};
    if (account === 'posthorn-uninstall') isBeingUninstalled = true;
    if (code === 403) {
      if (!isBeingUninstalled && !refusedByAdmission.test(message)) asked.forbidden.push(`${account} ${verb} ${requestURI}: ${message}`);
      continue;
    }
    if (account === 'posthorn-controller') isBeingUninstalled = false;
    const { resource, subresource, apiGroup = '' } = objectRef ?? {};
    if (resource === undefined || userAgent !== `posthorn/${version}`) continue;
    const name = subresource === undefined ? resource : `${resource}/${subresource}`;
    asked.used.add(permission(account, verb, apiGroup, name));
    // An apply that makes the object needs both.
    if (verb === 'patch' && code === 201) asked.used.add(permission(account, 'create', apiGroup, name));
  }
  return asked;
}

/** Names a permission as `readAuditLog` does. */
export function permission(account: string, verb: string, group: string, resource: string): string {
  return `${account} ${verb} ${resource}${group === '' ? '' : `.${group}`}`;
}
