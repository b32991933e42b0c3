import { expect, test } from '@jest/globals';
import { silentLogger } from '../../../test/support/logger.ts';
import { storedObject } from '../../../test/support/objects.ts';
import { withinProcessorTime } from '../../../test/support/short-work.ts';
import type { PosthornObject } from '../../resources/kinds.ts';
import { ResourceCache } from '../../store/cache.ts';
import { nameIn } from '../controller-caches.ts';
import { keysBelow } from './api-key-rules.ts';

const hash = (letter: string): string => letter.repeat(64);

function cacheOf(keys: readonly [own: string, maker: string | null][]): ResourceCache<'ApiKey'> {
  const cache = new ResourceCache('ApiKey', {
    indexes: {
      keyMaker: ({ metadata, spec }) => (spec.createdBy?.sha256 === undefined ? [] : [nameIn(metadata.namespace, spec.createdBy.sha256)]),
    },
    logger: silentLogger,
  });
  for (const [i, [own, maker]] of keys.entries()) cache.upsert(key(`key-${i}`, own, maker));
  return cache;
}

function key(name: string, own: string, maker: string | null): PosthornObject<'ApiKey'> {
  const spec = { sha256: hash(own), role: 'viewer' as const, ...(maker !== null && { createdBy: { name: 'maker', sha256: hash(maker) } }) };
  const object = storedObject('ApiKey', name, spec, 'acme');
  const uid = `00000000-0000-4000-8000-${name.slice('key-'.length).padStart(12, '0')}`;
  return { ...object, metadata: { ...object.metadata, uid } };
}

test('the keys below one are those that it made, that these made, and so on, each once', () => {
  const cache = cacheOf([
    ['a', null],
    ['b', 'a'],
    ['c', 'b'],
    ['c', 'a'],
    ['d', 'c'],
    ['a', 'd'],
    ['e', 'f'],
  ]);
  const names = [...keysBelow(cache, 'acme', hash('a'))].map(({ metadata }) => metadata.name);
  expect(names.toSorted()).toEqual(['key-1', 'key-2', 'key-3', 'key-4', 'key-5']);
  expect(keysBelow(cache, 'other', hash('a')).size).toBe(0);
});

test('thousands of keys that name their own hash as that of their maker are found at once', () => {
  const cache = cacheOf(Array.from({ length: 6000 }, () => ['a', 'a'] as [string, string]));
  expect(withinProcessorTime(() => keysBelow(cache, 'acme', hash('a'))).size).toBe(6000);
});
