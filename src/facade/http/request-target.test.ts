import { expect, test } from '@jest/globals';
import { requestTarget } from './request-target.ts';

test.each([
  ['/api/sources', '/api/sources', ''],
  ['/api/sources?page=2&search=a?b', '/api/sources', 'page=2&search=a?b'],
  ['/api/sources?', '/api/sources', ''],
  ['/api/sources?page=2#top', '/api/sources', 'page=2'],
  ['//api/sources', '//api/sources', ''],
  ['*', '*', ''],
  ['', '', ''],
])('%j requests %j', (url, path, query) => {
  expect(requestTarget(url)).toEqual({ path, query });
});
