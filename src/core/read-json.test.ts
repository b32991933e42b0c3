import { expect, test } from '@jest/globals';
import { isJson } from './plain-json.ts';
import { readJson } from './read-json.ts';

test.each([
  '{"a":1,1.0:2}',
  '{"a":1, 1e3 :2}',
  '{1.0:2}',
  '{"a":1.0,19.90\n:1}',
  '[1.0:1]',
  '{"a":01.0}',
  '{"a":1.0.0}',
  '{"a" 1.0}',
  '[1.0 "a"]',
  '[19.90,]',
])('%j is no JSON, as JSON.parse has it', (text) => {
  expect([isJson(text), readJson(text)]).toEqual([false, undefined]);
});
