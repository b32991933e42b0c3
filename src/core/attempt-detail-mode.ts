/** Of which attempts the detail is kept: of those that fail and a success after them, of all, or of none. */
export const attemptDetailModes = ['failures', 'all', 'none'] as const;
export type AttemptDetailMode = (typeof attemptDetailModes)[number];
