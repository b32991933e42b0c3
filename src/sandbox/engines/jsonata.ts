import jsonata, { type Expression } from 'jsonata';
import { LRUCache } from 'lru-cache';
import { withoutByteOrderMark } from '../../core/payload-text.ts';
import { sandboxLimits } from '../jobs.ts';
import { CodeError, eventOf, lineAndColumn, type TransformEngine } from './engine.ts';
import { KeptNumbers } from './kept-numbers.ts';

const compiled = new LRUCache<string, Expression>({ max: 200 });

/** An expression over the event; its value is the output. */
export const jsonataEngine: TransformEngine = {
  check: async (code) => void compile(code),
  run: async ({ code, event, payload, warn }) => {
    const expression = compiled.get(code) ?? compile(code);
    compiled.set(code, expression);
    try {
      const input = eventOf({ event, payload });
      if (mayHaveMarks(event) || mayHaveMarks(payload)) refuseMarks(input);
      const value: unknown = await expression.evaluate(input);
      if (withoutFunctions('', value) !== value) throw new CodeError('the output is a function, which JSON does not have');
      const kept = KeptNumbers.of([event, payload]);
      const text = JSON.stringify(
        value,
        kept === null ? withoutFunctions : (key, member) => withNumbers(kept, withoutFunctions(key, member)),
      );
      if (kept?.warning != null) warn?.(kept.warning);
      return text ?? null;
    } catch (error) {
      if (error instanceof CodeError) throw error;
      throw codeError(error, code);
    }
  },
};

function compile(code: string): Expression {
  let expression: Expression;
  try {
    expression = jsonata(withoutByteOrderMark(code), { timeout: sandboxLimits.computingMs, stack: 500, sequence: 1_000_000 });
  } catch (error) {
    throw codeError(error, code);
  }
  const { type, expressions } = expression.ast();
  if (type === 'block' && expressions?.length === 0) throw new CodeError('the expression has no value for any event');
  return expression;
}

function withNumbers(kept: KeptNumbers, value: unknown): unknown {
  const text = typeof value === 'number' ? kept.textOf(value) : undefined;
  return text === undefined ? value : JSON.rawJSON(text);
}

/** JSONata's functions are objects to JSON. */
function withoutFunctions(_key: string, value: unknown): unknown {
  const isFunction = typeof value === 'object' && value !== null && (has(value, '_jsonata_lambda') || has(value, '_jsonata_function'));
  return isFunction ? undefined : value;
}

/**
 * Members by which the library identifies functions and sequences of its own among the objects that it works on, and the values for which it does. With them a
 * sender would make an object disappear, replace the context, or bind variables of the expression.
 */
const marks: Readonly<Record<string, (value: unknown) => boolean>> = {
  _jsonata_lambda: (value) => value === true,
  _jsonata_function: (value) => value === true,
  tupleStream: Boolean,
  outerWrapper: Boolean,
};
const nameOfMark = new RegExp(String.raw`${Object.keys(marks).join('|')}|\\u`);

/** Whether a JSON text may name one of the marks; letters may be written as escapes. */
function mayHaveMarks(text: string): boolean {
  return nameOfMark.test(text);
}

/** Throws CodeError when an object in the value has a mark. */
function refuseMarks(input: object): void {
  const left: object[] = [input];
  for (let value = left.pop(); value !== undefined; value = left.pop()) {
    for (const name of Object.keys(marks))
      if (has(value, name)) throw new CodeError(`The event has a member ${name}, which JSONata reserves for itself; use JavaScript.`);
    for (const member of Object.values(value)) if (typeof member === 'object' && member !== null) left.push(member);
  }
}

function has(value: object, mark: string): boolean {
  return !Array.isArray(value) && Object.hasOwn(value, mark) && marks[mark]?.(Reflect.get(value, mark)) === true;
}

/** JSONata throws plain objects with a code, a message and a position. */
function codeError(error: unknown, code: string): CodeError {
  if (typeof error !== 'object' || error === null || !('message' in error)) return new CodeError(String(error));
  const position = 'position' in error && typeof error.position === 'number' ? error.position : null;
  return new CodeError(String(error.message), position === null ? {} : lineAndColumn(code, position));
}
