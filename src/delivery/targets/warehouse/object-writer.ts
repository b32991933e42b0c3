import type { Transport } from './transport.ts';

/** Writes complete objects. Replaces an object that exists. */
export interface ObjectWriter {
  /** Rejects when the store has not taken the object; the transport has its response. */
  put(object: StoredObject, transport: Transport): Promise<void>;
}

export interface StoredObject {
  key: string;
  body: Buffer;
  contentType: string;
}
