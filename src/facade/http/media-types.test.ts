import { expect, test } from '@jest/globals';
import { prefersYaml } from './media-types.ts';

test.each([
  [undefined, false],
  ['', false],
  ['*/*', false],
  ['application/*', false],
  ['application/json, application/yaml', false],
  ['application/yaml;q=0, */*', false],
  ['text/yaml;q=0.4, application/json;q=0.5', false],
  ['text/html', false],
  ['application/yaml', true],
  ['Application/X-YAML', true],
  ['*/*, application/yaml', true],
  ['application/yaml, application/json', true],
  ['text/*', true],
  ['text/yaml;q=0.5, application/json;q=0.4', true],
  ['*/*;q=0.1, text/yaml', true],
])('Accept: %s wants YAML: %s', (accept, wantsYaml) => {
  expect(prefersYaml(accept)).toBe(wantsYaml);
});
