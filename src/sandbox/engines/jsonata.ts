import jsonata, { type Expression } from 'jsonata';
import { LRUCache } from 'lru-cache';
import { sandboxLimits } from '../jobs.ts';
import { CodeError, eventOf, placeAt, type TransformEngine } from './engine.ts';

const compiled = new LRUCache<string, Expression>({ max: 200 });

/** An expression over the event; its value is the output. */
export const jsonataEngine: TransformEngine = {
  check: async (code) => void compile(code),
  run: async ({ code, event, payload }) => {
    const expression = compiled.get(code) ?? compile(code);
    compiled.set(code, expression);
    try {
      const value: unknown = await expression.evaluate(eventOf({ event, payload }));
      return JSON.stringify(value, withoutFunctions) ?? null;
    } catch (error) {
      throw codeError(error, code);
    }
  },
};

function compile(code: string): Expression {
  try {
    return jsonata(code, { timeout: sandboxLimits.computingMs, stack: 500, sequence: 1_000_000 });
  } catch (error) {
    throw codeError(error, code);
  }
}

/** JSONata's functions are objects to JSON. */
function withoutFunctions(_key: string, value: unknown): unknown {
  const isFunction = typeof value === 'object' && value !== null && ('_jsonata_lambda' in value || '_jsonata_function' in value);
  return isFunction ? undefined : value;
}

/** JSONata throws plain objects with a code, a message and a position. */
function codeError(error: unknown, code: string): CodeError {
  if (typeof error !== 'object' || error === null || !('message' in error)) return new CodeError(String(error));
  const position = 'position' in error && typeof error.position === 'number' ? error.position : null;
  return new CodeError(String(error.message), position === null ? {} : placeAt(code, position));
}
