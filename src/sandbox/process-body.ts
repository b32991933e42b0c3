import { Worker } from 'node:worker_threads';
import { largestPayloadBytes } from '../core/payload-sizes.ts';
import { payloadText, withoutByteOrderMark } from '../core/payload-text.ts';
import { isJson } from '../core/plain-json.ts';
import { readablePayload } from '../core/readable-payload.ts';
import { CodeError, type TransformEngine } from './engines/engine.ts';
import { javascriptEngine } from './engines/javascript.ts';
import { checkSchema, validate } from './engines/json-schema.ts';
import { jsonataEngine } from './engines/jsonata.ts';
import { liquidEngine } from './engines/liquid.ts';
import { evaluate } from './evaluate-payload.ts';
import { harden } from './harden.ts';
import { failed, type Job, type LargeJob, type PayloadPiece, type Reply, sandboxLimits, type TransformType } from './jobs.ts';

const engines: Record<TransformType, TransformEngine> = { jsonata: jsonataEngine, javascript: javascriptEngine, liquid: liquidEngine };

async function perform(job: Job): Promise<Reply> {
  switch (job.task) {
    case 'transform':
      return await transformed(job);
    case 'check-transform':
      await engines[job.type].check(job.code);
      return { type: 'checked' };
    case 'validate':
      return { type: 'validated', problems: validate(job.schemas, job.payload, job.maxProblems) };
    case 'evaluate':
      return { type: 'evaluated', evaluation: evaluate(job) };
    case 'check-schema':
      checkSchema(job.schema);
      return { type: 'checked' };
  }
}

async function transformed(job: Extract<Job, { task: 'transform' }>): Promise<Reply> {
  let warning: string | null = null;
  const warn = (text: string): void => {
    warning = text;
  };
  return output(job.type, await engines[job.type].run({ ...job, warn }), warning);
}

/** JSON, but for templates that write something else. */
function output(type: TransformType, text: string | null, warning: string | null): Reply {
  if (text === null || (text === 'null' && type !== 'liquid')) return { type: 'output', output: null };
  if (Buffer.byteLength(text) > sandboxLimits.outputBytes) return failed('the output is larger than 1 MiB');
  const contentType = type === 'liquid' && !isJson(withoutByteOrderMark(text)) ? 'text/plain; charset=utf-8' : 'application/json';
  return { type: 'output', output: { contentType, body: text, warning } };
}

async function replyTo(job: () => Job): Promise<Reply> {
  try {
    return await perform(job());
  } catch (error) {
    if (error instanceof CodeError) return failed(error.message, error.line, error.column);
    return failed(error instanceof Error ? error.message : String(error));
  }
}

const send = process.send?.bind(process);
if (send === undefined) throw new Error('this module is the body of a process of its own');
/** Pieces of the payload of the next job. */
let pieces: Uint8Array[] = [];
process.on('message', (message: Job | PayloadPiece | LargeJob) => {
  if ('piece' in message) {
    pieces.push(message.piece);
    return;
  }
  void replyTo('format' in message ? () => withPayload(message) : () => message).then((reply) => send(reply));
});

/** Throws CodeError for a transform whose payload cannot be decompressed: it would see other bytes than it was written for. */
function withPayload({ job, format }: LargeJob): Job {
  const sent = Buffer.concat(pieces);
  pieces = [];
  if (!('payload' in job)) return job;
  if (format === null) return { ...job, payload: payloadText(sent) };
  const { bytes, problem } = readablePayload(sent, format, largestPayloadBytes);
  if (problem !== null && job.task === 'transform') throw new CodeError(problem);
  return { ...job, payload: payloadText(bytes) };
}

const parentWatch = `
const parent = process.ppid;
setInterval(() => { if (process.ppid !== parent) process.kill(process.pid, 'SIGKILL'); }, 1000);
`;

/** Ends this process when its parent is gone, also while code of a user keeps the main thread busy. */
function watchParent(): void {
  new Worker(parentWatch, { eval: true, env: {}, resourceLimits: { maxOldGenerationSizeMb: 8, maxYoungGenerationSizeMb: 2 } }).unref();
}

process.on('disconnect', () => process.exit());
// They are meant for the parent, which lets what is under way end.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => {});
watchParent();
harden();
send('ready');
