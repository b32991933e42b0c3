/** Attempts whose detail is kept: failures and a success after them, all, or none. */
export const attemptDetailModes = ['failures', 'all', 'none'] as const;
export type AttemptDetailMode = (typeof attemptDetailModes)[number];
