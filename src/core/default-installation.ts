/** Installation of an Organization that names none, and of a process that is told none. */
export const defaultInstallation = 'default';
