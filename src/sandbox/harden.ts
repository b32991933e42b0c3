/** First targets of code that got out of its engine. Node's own modules do not need these globals. */
const doors = ['fetch', 'WebSocket', 'EventSource', 'XMLHttpRequest', 'navigator', 'Worker', 'localStorage', 'sessionStorage'];

const shared = [Object, Array, Function, String, Number, Boolean, RegExp, Date, Error, Promise, Map, Set];

/**
 * Hardens this process against code that escapes: prototypes take no new properties, no value leads to a constructor of
 * functions, and there is no network. The engines load before.
 */
export function harden(): void {
  for (const name of doors) Reflect.deleteProperty(globalThis, name);
  const asyncFunction = async (): Promise<void> => {};
  const functions = [() => {}, asyncFunction, function* () {}, async function* () {}];
  for (const each of functions) Reflect.deleteProperty(Object.getPrototypeOf(each), 'constructor');
  Reflect.deleteProperty(Object.prototype, '__proto__');
  for (const { prototype } of shared) Object.preventExtensions(prototype);
}
