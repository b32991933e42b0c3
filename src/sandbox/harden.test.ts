import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';

/** In a process of its own: what it removes is gone for good. */
async function inHardenedProcess(expression: string): Promise<string> {
  const code = `import { harden } from ${JSON.stringify(new URL('./harden.ts', import.meta.url))}; harden(); console.log(${expression});`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--no-warnings', '--input-type=module', '-e', code]);
  return stdout.trim();
}

test.each([
  ['a function leads to no constructor of functions', 'String((() => {}).constructor === Function)', 'false'],
  ['an asynchronous function leads to none either', 'String((async () => {}).constructor === Function)', 'false'],
  ['a generator leads to none either', 'String((function* () {}).constructor === Function)', 'false'],
  ['there is no network', '[typeof fetch, typeof WebSocket, typeof EventSource].join()', 'undefined,undefined,undefined'],
  ['prototypes take nothing new', 'String(Reflect.defineProperty(Object.prototype, "polluted", { value: 1 }))', 'false'],
  ['lists take nothing new', 'String(Reflect.defineProperty(Array.prototype, "polluted", { value: 1 }))', 'false'],
  ['no object has __proto__', 'String("__proto__" in {})', 'false'],
])('%s', async (_what, expression, expected) => {
  expect(await inHardenedProcess(expression)).toBe(expected);
});
