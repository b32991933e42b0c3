import { hashFields } from '../../src/data/shard/hash-fields.ts';

/** A suite that reads or writes a hash in Redis itself takes the names of its fields from here. */
export const field = hashFields;
