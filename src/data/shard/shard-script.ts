import { Script } from '../../redis/script.ts';
import { hashFields } from './hash-fields.ts';

/** A script that names fields of the hashes of a shard (`hash-fields.ts`). */
export class ShardScript extends Script {
  constructor(file: URL) {
    super(file, hashFields);
  }
}
