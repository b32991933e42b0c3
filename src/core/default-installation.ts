/** Installation of an Organization that names none, and of a process that is configured with none. */
export const defaultInstallation = 'default';
