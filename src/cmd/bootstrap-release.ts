import type { ObjectMeta } from '../resources/metadata.ts';

const annotation = 'posthorn.dev/released';

/** Whether the installation no longer requires this object: it may go and is not made again. */
export function isReleased({ metadata }: { metadata: Pick<ObjectMeta, 'annotations'> }): boolean {
  return metadata.annotations?.[annotation] === 'true';
}

/** Applied to an object before it is deleted for good. */
export const release = { annotations: { [annotation]: 'true' } } as const;
/** Field manager of `release`. */
export const releaseManager = 'posthorn-uninstall';
