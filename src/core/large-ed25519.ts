import { type KeyObject, sign, verify } from 'node:crypto';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import { pieceBytes } from './hash-in-pieces.ts';

/** What a signature covers. */
export interface LargeContent {
  head: string;
  body: Uint8Array;
}

/** Runs work piece by piece in the turns of the event loop. */
export type InTurns = <T>(work: Generator<undefined, T>) => Promise<T>;

/** A thread of libuv works on a copy, which is made in one turn of the event loop. Larger contents are handed over to a thread of their own. */
const maxCopiedBytes = 8_388_608;

const signElsewhere = promisify(sign);
const verifyElsewhere = promisify(verify);

/** An Ed25519 signature that no turn of the event loop waits for: the algorithm reads its content twice and has no pieces. */
export async function signLarge(content: LargeContent, key: KeyObject, inTurns: InTurns): Promise<Buffer> {
  const joined = await inTurns(joinedInPieces(content));
  if (joined.length <= maxCopiedBytes) return await signElsewhere(null, joined, key);
  return Buffer.from(await inOwnThread<Uint8Array>('sign(null, content, key)', joined, { key }));
}

/** The same of a verification. */
export async function verifyLarge(
  content: LargeContent,
  { key, signature }: { key: KeyObject; signature: Buffer },
  inTurns: InTurns,
): Promise<boolean> {
  const joined = await inTurns(joinedInPieces(content));
  if (joined.length <= maxCopiedBytes) return await verifyElsewhere(null, joined, key, signature);
  return await inOwnThread<boolean>('verify(null, content, key, signature)', joined, { key, signature: new Uint8Array(signature) });
}

function* joinedInPieces({ head, body }: LargeContent): Generator<undefined, Uint8Array<ArrayBuffer>> {
  const first = Buffer.from(head);
  const joined = new Uint8Array(Buffer.allocUnsafeSlow(first.length + body.length).buffer);
  joined.set(first);
  for (let begin = 0; begin < body.length; begin += pieceBytes) {
    if (begin > 0) yield;
    joined.set(body.subarray(begin, begin + pieceBytes), first.length + begin);
  }
  return joined;
}

/** The value of an expression over `content`, which is moved there and is empty here from then on. */
function inOwnThread<T>(expression: string, content: Uint8Array<ArrayBuffer>, values: Record<string, unknown>): Promise<T> {
  const code = `
    const { sign, verify } = require('node:crypto');
    const { parentPort, workerData: { content, key, signature } } = require('node:worker_threads');
    parentPort.postMessage(${expression});`;
  return new Promise((resolve, reject) => {
    const thread = new Worker(code, {
      eval: true,
      env: {},
      execArgv: [],
      workerData: { ...values, content },
      transferList: [content.buffer],
    });
    thread.once('message', resolve);
    thread.once('error', reject);
    thread.once('exit', (code) => reject(new Error(`the thread of an Ed25519 signature ended with ${code}`)));
  });
}
