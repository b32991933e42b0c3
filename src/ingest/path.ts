/** Whether a request with this target is for ingest: its path is `/ingest` or below. */
export function isIngestTarget(target: string): boolean {
  if (!target.startsWith('/ingest')) return false;
  const after = target[7];
  return after === undefined || after === '/' || after === '?';
}
