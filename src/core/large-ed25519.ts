import { type KeyObject, sign, verify } from 'node:crypto';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import { FairScheduler, type JobOwner } from './fair-scheduler.ts';
import { pieceBytes } from './hash-in-pieces.ts';
import { AbandonedError, throwIfAbandoned } from './loop-turns.ts';

/** Signed content. */
export interface LargeContent {
  head: string;
  body: Uint8Array;
}

/** For whom a signature is made or verified. */
export interface LargeWork extends JobOwner {
  /** Runs chunked work over turns of the event loop. */
  inTurns: <T>(pieces: Generator<undefined, T>) => Promise<T>;
  /** Aborted: the result is not needed. Rejects with AbandonedError. */
  signal?: AbortSignal;
}

export interface KeyAndSignature {
  key: KeyObject;
  signature: Buffer;
}

/** A thread of libuv works on a copy, which is made in one turn of the event loop. Larger contents go to a thread of their own. */
const maxCopiedBytes = 8_388_608;

const signElsewhere = promisify(sign);
const verifyElsewhere = promisify(verify);

/** Jobs of this process. Organizations alternate, as do the sources and targets of each. One content at a time: it is copied, and a thread has an isolate. */
const threads = new FairScheduler<() => Promise<void>>(1, () => performance.now());

/** Ed25519 signatures off the event loop: the algorithm reads its content twice and cannot be chunked. */
export function signLarge(content: LargeContent, keys: readonly KeyObject[], work: LargeWork): Promise<Buffer[]> {
  return inTurnOf(work, content.body.length, async () => {
    const joined = await work.inTurns(joinedInPieces(content));
    if (joined.length > maxCopiedBytes) {
      const signatures = await inOwnThread<Uint8Array[]>('keys.map((key) => sign(null, content, key))', joined, { keys }, work.signal);
      return signatures.map((each) => Buffer.from(each));
    }
    const signatures: Buffer[] = [];
    for (const key of keys) {
      throwIfAbandoned(work.signal);
      signatures.push(await signElsewhere(null, joined, key));
    }
    return signatures;
  });
}

/** Whether one of the keys made the signature beside it. */
export function verifyLarge(content: LargeContent, pairs: readonly KeyAndSignature[], work: LargeWork): Promise<boolean> {
  return inTurnOf(work, content.body.length, async () => {
    const joined = await work.inTurns(joinedInPieces(content));
    if (joined.length > maxCopiedBytes) {
      const copied = pairs.map(({ key, signature }) => ({ key, signature: new Uint8Array(signature) }));
      const expression = 'pairs.some(({ key, signature }) => verify(null, content, key, signature))';
      return await inOwnThread<boolean>(expression, joined, { pairs: copied }, work.signal);
    }
    for (const { key, signature } of pairs) {
      throwIfAbandoned(work.signal);
      if (await verifyElsewhere(null, joined, key, signature)) return true;
    }
    return false;
  });
}

/** `bytes`: of the content, which is in memory while it waits. */
function inTurnOf<T>({ signal, ...owner }: LargeWork, bytes: number, work: () => Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    throwIfAbandoned(signal);
    const leave = (): void => {
      if (threads.remove(owner, begin)) reject(new AbandonedError('nobody waits for the signature'));
    };
    const begin = (): Promise<void> => {
      signal?.removeEventListener('abort', leave);
      return work().then(resolve, reject);
    };
    signal?.addEventListener('abort', leave);
    threads.add(owner, begin, bytes);
    beginNext();
  });
}

function beginNext(): void {
  const turn = threads.next();
  if (turn === null) return;
  turn.start();
  void turn.item().finally(() => {
    turn.end();
    beginNext();
  });
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

/** The value of an expression over `content`, which is moved there and is empty here from then on. Settles when the thread has ended. */
function inOwnThread<T>(
  expression: string,
  content: Uint8Array<ArrayBuffer>,
  values: Record<string, unknown>,
  signal: AbortSignal | undefined,
): Promise<T> {
  const code = `
    const { sign, verify } = require('node:crypto');
    const { parentPort, workerData: { content, keys, pairs } } = require('node:worker_threads');
    parentPort.postMessage(${expression});`;
  return new Promise((resolve, reject) => {
    throwIfAbandoned(signal);
    const thread = new Worker(code, {
      eval: true,
      env: {},
      execArgv: [],
      workerData: { ...values, content },
      transferList: [content.buffer],
    });
    const stop = (): void => void thread.terminate();
    signal?.addEventListener('abort', stop);
    let result: { value: T } | null = null;
    let problem: unknown = null;
    thread.once('message', (value: T) => {
      result = { value };
    });
    thread.once('error', (error) => {
      problem = error;
    });
    thread.once('exit', (code) => {
      signal?.removeEventListener('abort', stop);
      if (result !== null) resolve(result.value);
      else if (signal?.aborted === true) reject(new AbandonedError('nobody waits for the signature'));
      else reject(problem ?? new Error(`the thread of an Ed25519 signature ended with ${code}`));
    });
  });
}
