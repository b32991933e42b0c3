import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import variant from '@jitl/quickjs-wasmfile-release-sync';
import { LRUCache } from 'lru-cache';
import {
  newQuickJSWASMModuleFromVariant,
  newVariant,
  type QuickJSContext,
  type QuickJSHandle,
  type QuickJSRuntime,
  type QuickJSSyncVariant,
  type QuickJSWASMModule,
  Scope,
} from 'quickjs-emscripten-core';
import { largeForm, type SandboxForm, usualForm } from '../jobs.ts';
import { CodeError, type TransformEngine } from './engine.ts';
import { KeptNumbers } from './kept-numbers.ts';
import { type ValuelessScript, valuelessScript } from './script-output.ts';

const file = 'transform.js';
const stackBytes = 262_144;
/** Initial memory of a module. */
const keptMemoryBytes = 16_777_216;
const placePattern = /transform\.js:(\d+)(?::(\d+))?/;
const wasmFile = createRequire(import.meta.url).resolve('@jitl/quickjs-wasmfile-release-sync/wasm');

/** Makes the event from the texts, before code of a user has run. */
const prepareEvent = `(description, payload) => {
  const event = JSON.parse(description);
  try { event.payload = JSON.parse(payload); } catch { event.payload = payload; }
  globalThis.event = event;
}`;

/** Read in the scope of scripts, where \`const\`, \`let\` and \`class\` are, too. A class cannot be called. */
const transformOfCode =
  "() => typeof transform === 'function' && !/^class\\b/.test(Function.prototype.toString.call(transform)) ? transform : undefined";

/** The value of the code is a function, or the code defines \`transform\`, or its value is the output itself. */
const outputOf = `(value, transform) => {
  const f = typeof value === 'function' ? value : typeof transform === 'function' ? transform : null;
  return f === null ? value : f(globalThis.event);
}`;

/** Doubles that JSON cannot represent become texts that begin with the mark. */
const textWithMarks = `(value, mark) => JSON.stringify(value, (_key, member) =>
  Object.is(member, -0) ? mark + '-0' : member === Infinity || member === -Infinity ? mark + member : member)`;

/** Output without a form in JSON: of a Map or a generator it would be \`{}\`, of a function nothing. */
const unwritableKind = `(value) => {
  if (typeof value === 'function' || typeof value === 'symbol') return typeof value;
  if (typeof value !== 'object' || value === null || Array.isArray(value) || typeof value.toJSON === 'function') return '';
  const kind = Object.prototype.toString.call(value).slice(8, -1);
  return kind === 'Object' || Object.keys(value).length > 0 || value instanceof String || value instanceof Number || value instanceof Boolean ? '' : kind;
}`;

function withKept(json: string, kept: KeptNumbers): string {
  // The mark has digits.
  const pieces = json.split(`"${kept.mark}`).map((piece, i) => {
    if (i === 0) return kept.written(piece);
    const [double = '', ...rest] = piece.split('"');
    const written = kept.textOf(Number(double)) ?? JSON.stringify(Number(double));
    return written + kept.written(rest.join('"'));
  });
  return pieces.join('');
}

/** Not a module, whatever the code has in it: what is checked and what runs is the same. */
const asScript = { type: 'global' } as const;

/** Its types are those of the CommonJS build. */
const quickJs: QuickJSSyncVariant = 'default' in variant ? variant.default : variant;
const wasmBinary = new Uint8Array(readFileSync(wasmFile)).buffer;
/** A module, which is a memory, for each organization: what a defect of QuickJS would let one reach is its own. */
const modules = new LRUCache<string, QuickJSWASMModule>({ max: 16 });

type RunLimits = Pick<SandboxForm, 'computingMs' | 'javascriptMemoryBytes'>;

const usualLimits: RunLimits = usualForm;

/** ECMAScript 2023 in QuickJS, with nothing of the host: a new context for every run, 16 MiB, 1 s of computing; more of both for a payload above 1 MiB. */
export const javascriptEngine: TransformEngine = {
  check: async (code) =>
    inContext('', usualLimits, (run) => {
      refuseWithoutOutput(code);
      run.value(run.context.evalCode(code, file, { ...asScript, compileOnly: true }));
    }),
  run: async ({ organization, code, event, payload, isLarge = false, warn }) =>
    inContext(organization, isLarge ? largeForm : usualLimits, (run) => {
      const { context } = run;
      const valueless = refuseWithoutOutput(code);
      const prepare = run.own(prepareEvent);
      const finish = run.own(outputOf);
      const bound = run.own(transformOfCode);
      const kept = KeptNumbers.of([event, payload]);
      const unwritable = run.own(unwritableKind);
      const toText = run.own(kept?.hasUnwritable === true ? textWithMarks : '(value) => JSON.stringify(value)');
      run.call(prepare, run.text(event), run.text(payload));
      const value = run.value(context.evalCode(code, file, asScript));
      const transform = run.call(bound);
      if (valueless !== null && context.typeof(transform) !== 'function') throw new CodeError(valueless.complaint);
      const output = run.settled(run.call(finish, value, transform));
      const kind = context.getString(run.call(unwritable, output));
      if (kind !== '') throw new CodeError(`the output is a ${kind}, which JSON does not have`);
      const text = run.call(toText, output, ...(kept === null ? [] : [run.text(kept.mark)]));
      if (context.typeof(text) !== 'string') return null;
      if (kept === null) return context.getString(text);
      const written = withKept(context.getString(text), kept);
      if (kept.warning !== null) warn?.(kept.warning);
      return written;
    }),
};

function refuseWithoutOutput(code: string): ValuelessScript | null {
  const valueless = valuelessScript(code);
  if (valueless?.isCertain === true) throw new CodeError(valueless.complaint);
  return valueless;
}

async function inContext<T>(organization: string, limits: RunLimits, work: (run: Run) => T): Promise<T> {
  const module = modules.get(organization) ?? (await newQuickJSWASMModuleFromVariant(newVariant(quickJs, { wasmBinary })));
  modules.set(organization, module);
  try {
    return Scope.withScope((scope) => {
      const runtime = scope.manage(module.newRuntime());
      const isOver = limit(runtime, limits);
      return work(new Run({ context: scope.manage(runtime.newContext()), scope, isOver, limits }));
    });
  } catch (error) {
    if (error instanceof CodeError) throw error;
    // A trap leaves the memory in any state.
    modules.delete(organization);
    throw new CodeError('the code has broken the interpreter');
  } finally {
    // A memory that has grown never shrinks.
    const { byteLength }: { byteLength: number } = module.getWasmMemory().buffer;
    if (byteLength > keptMemoryBytes) modules.delete(organization);
  }
}

/** Returns whether the time is over. */
function limit(runtime: QuickJSRuntime, { computingMs, javascriptMemoryBytes }: RunLimits): () => boolean {
  const end = computedMs() + computingMs;
  const isOver = (): boolean => computedMs() > end;
  runtime.setMemoryLimit(javascriptMemoryBytes);
  runtime.setMaxStackSize(stackBytes);
  runtime.setInterruptHandler(isOver);
  return isOver;
}

function stopped({ computingMs }: RunLimits): CodeError {
  return new CodeError(`stopped after ${computingMs} ms of computing`);
}

/** Milliseconds that this thread has computed. */
function computedMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

/** Values of one run, which are released together with it. */
class Run {
  readonly context: QuickJSContext;
  readonly #scope: Scope;
  readonly #isOver: () => boolean;
  readonly #limits: RunLimits;

  constructor({ context, scope, isOver, limits }: { context: QuickJSContext; scope: Scope; isOver: () => boolean; limits: RunLimits }) {
    this.#limits = limits;
    this.context = context;
    this.#scope = scope;
    this.#isOver = isOver;
  }

  own(code: string): QuickJSHandle {
    return this.value(this.context.evalCode(code, 'posthorn.js'));
  }

  text(value: string): QuickJSHandle {
    return this.#scope.manage(this.context.newString(value));
  }

  call(target: QuickJSHandle, ...args: QuickJSHandle[]): QuickJSHandle {
    return this.value(this.context.callFunction(target, this.context.undefined, ...args));
  }

  value(result: ReturnType<QuickJSContext['evalCode']>): QuickJSHandle {
    if (result.error === undefined) return this.#scope.manage(result.value);
    throw this.#codeError(this.#scope.manage(result.error));
  }

  /** Result of a promise. Nothing from outside can settle it: when there is no more to do, it never will be. */
  settled(value: QuickJSHandle): QuickJSHandle {
    const { context } = this;
    const jobs = context.runtime.executePendingJobs();
    if (jobs.error !== undefined) throw this.#codeError(this.#scope.manage(jobs.error));
    const state = context.getPromiseState(value);
    switch (state.type) {
      case 'fulfilled':
        return state.notAPromise === true ? value : this.#scope.manage(state.value);
      case 'rejected':
        throw this.#codeError(this.#scope.manage(state.error));
      case 'pending':
        // Stopped in the middle of asynchronous code, QuickJS leaves its promise as it is.
        if (this.#isOver()) throw stopped(this.#limits);
        throw new CodeError('the promise that the code returns is never settled');
    }
  }

  #codeError(error: QuickJSHandle): CodeError {
    if (this.#isOver()) return stopped(this.#limits);
    const name = this.#textOf(error, 'name');
    const message = this.#textOf(error, 'message');
    if (name === 'InternalError' && message === 'out of memory')
      return new CodeError(`more than ${this.#limits.javascriptMemoryBytes / 1_048_576} MiB of memory`);
    if (message === null) return new CodeError('the code has thrown a value that is no error');
    const [, line, column] = placePattern.exec(this.#textOf(error, 'stack') ?? '') ?? [];
    const place = line === undefined ? {} : { line: Number(line), column: column === undefined ? null : Number(column) };
    return new CodeError(name === null ? message : `${name}: ${message}`, place);
  }

  #textOf(handle: QuickJSHandle, property: string): string | null {
    if (this.context.typeof(handle) !== 'object') return null;
    const value = this.#scope.manage(this.context.getProp(handle, property));
    return this.context.typeof(value) === 'string' ? this.context.getString(value) : null;
  }
}
