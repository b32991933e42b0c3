/** Clocks that differ by more are wrong: an alert fires, and operators are warned. */
export const maxClockSkewSeconds = 5;
