import type { RoleContext } from './role-process.ts';

/**
 * Returns a function that takes the result of each check; null: no error. A readiness check reports the error from the
 * first complaint on, and the log has each complaint once while it lasts.
 */
export function readinessReporter(
  { logger, readiness }: Pick<RoleContext, 'logger' | 'readiness'>,
  { check, message }: { check: string; message: string },
): (found: string | null) => void {
  let complaint: string | null = null;
  return (found) => {
    if (found === complaint) return;
    if (found !== null) logger.error({ reason: found }, message);
    readiness.set(check, found === null ? { ok: true } : { ok: false, detail: found });
    complaint = found;
  };
}
