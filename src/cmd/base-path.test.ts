import type { IncomingMessage } from 'node:http';
import { expect, test } from '@jest/globals';
import { ConfigError, readConfig } from './config.ts';
import { takeOffBasePath } from './http-server.ts';

test.each([
  ['/posthorn/api/routes?a=%2F', '/posthorn', '/api/routes?a=%2F'],
  ['/posthorn', '/posthorn', '/'],
  ['/posthorn?a=b', '/posthorn', '/?a=b'],
  ['/posthorn/', '/posthorn', '/'],
  ['/posthorn/ingest/a/%2e%2e/b', '/posthorn', '/ingest/a/%2e%2e/b'],
  ['/posthorn/a/x', '/posthorn/a', '/x'],
  ['/posthorns/api', '/posthorn', '/posthorns/api'],
  ['/api/posthorn/x', '/posthorn', '/api/posthorn/x'],
  ['/Posthorn/api', '/posthorn', '/Posthorn/api'],
  ['/api', '', '/api'],
  ['*', '/posthorn', '*'],
])('the target %s, below %s, is %s', (url, basePath, expected) => {
  const request = { url } as IncomingMessage;
  takeOffBasePath(request, basePath);
  expect(request.url).toBe(expected);
});

const read = (basePath: string) => readConfig('standalone', { POSTHORN_BASE_PATH: basePath }).basePath;

test.each(['', '/posthorn', '/tools/posthorn-2', '/a.b/c~d_e'])('a base path may be %s', (path) => {
  expect(read(path)).toBe(path);
});

test.each([
  'posthorn',
  '/',
  '/posthorn/',
  '//posthorn',
  '/a//b',
  '/..',
  '/a/../b',
  '/.a',
  '/a b',
  '/a?b',
  '/a%20b',
  '/"',
  '/api',
  '/ingest/x',
])('a base path may not be %s', (path) => {
  expect(() => read(path)).toThrow(ConfigError);
});
