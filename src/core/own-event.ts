/** One of Posthorn's own events, for one source with provider `posthorn`. */
export interface OwnEvent {
  org: string;
  sourceId: string;
  /** Derived from the occurrence and the source. An event with a known id is not stored again. */
  id: string;
  atMs: number;
  /** How often what it is about has been sent on (`hops.ts`). */
  hop: number;
  payload: Buffer;
}

/** A replaced signing secret that Posthorn's own events do not report yet. */
export interface UntoldRotation {
  atMs: number;
  /** The record that stores it. */
  shard: number;
  previousSecretExpiresAt: string | null;
  /** The field manager that rotated it; absent: not known. */
  by?: string;
}
