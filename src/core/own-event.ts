/** One of Posthorn's own events, for one source with provider `posthorn`. */
export interface OwnEvent {
  org: string;
  sourceId: string;
  /** The same whoever makes it: it is stored once. */
  id: string;
  atMs: number;
  /** How often what it is about has been sent on (`hops.ts`). */
  hop: number;
  payload: Buffer;
}
