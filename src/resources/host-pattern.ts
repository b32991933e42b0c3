import { text } from './text.ts';

/** A host that is not public and may be reached all the same: a name, or `*.` and the end of one. */
export const hostPattern = text(1, 253)
  .regex(/^(\*\.)?[A-Za-z0-9_]([-A-Za-z0-9_.]*[A-Za-z0-9_])?$/, 'must be a host name; *. may precede it')
  .describe('Host name or pattern.');
