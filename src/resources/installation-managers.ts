/** Field manager of what an installation in a cluster must have. */
export const bootstrapManager = 'posthorn-bootstrap';
/** Field manager of objects that standalone itself makes; removing manifests does not remove these. */
export const standaloneManager = 'posthorn-standalone';

/** Who applies the key of the installation (`POSTHORN_API_KEY`). */
export const installationManagers: ReadonlySet<string> = new Set([bootstrapManager, standaloneManager]);

/** Name of that key's resource in its namespace. */
export const adminKeyName = 'admin';
