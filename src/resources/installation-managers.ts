/** Field manager of what an installation in a cluster must have. */
export const bootstrapManager = 'posthorn-bootstrap';
/** Field manager of what standalone itself makes; manifests that are taken away do not take these along. */
export const standaloneManager = 'posthorn-standalone';

/** Who applies the key of the installation (`POSTHORN_API_KEY`). */
export const installationManagers: ReadonlySet<string> = new Set([bootstrapManager, standaloneManager]);

/** Name of that key's resource in its namespace. */
export const adminKeyName = 'admin';
