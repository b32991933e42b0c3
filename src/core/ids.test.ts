import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { assertProperty } from '../../test/support/property.ts';
import { base32, newTimedId, parseTimedId, requestsForeignId, resourceId, shardOfTimedId } from './ids.ts';

describe('base32', () => {
  // RFC 4648 section 10, in lower case and without padding.
  test.each([
    ['', ''],
    ['f', 'my'],
    ['fo', 'mzxq'],
    ['foo', 'mzxw6'],
    ['foob', 'mzxw6yq'],
    ['fooba', 'mzxw6ytb'],
    ['foobar', 'mzxw6ytboi'],
  ])('encodes %j as %j', (plain, encoded) => {
    expect(base32(Buffer.from(plain))).toBe(encoded);
  });
});

describe('resourceId', () => {
  const uid = '3f0e5a6c-7b1d-4c1e-9a53-0d4f2b6a8c7e';

  test('is the prefix and 26 characters of the uid', () => {
    expect(resourceId('dst_', { uid })).toMatch(/^dst_[a-z2-7]{26}$/);
  });

  test('is what the annotation of a restored object says', () => {
    expect(resourceId('dst_', { uid, annotations: { 'posthorn.dev/id': 'dst_abcdefghijklmnopqrstuvwxyz' } })).toBe(
      'dst_abcdefghijklmnopqrstuvwxyz',
    );
  });

  test.each(['dst_short', 'dst_abcdefghijklmnopqrstuvwxy\n', 'dst_ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'rte_abcdefghijklmnopqrstuvwxyz'])(
    'is its own when the annotation is no id of the kind: %j',
    (kept) => {
      const metadata = { uid, annotations: { 'posthorn.dev/id': kept } };
      expect(resourceId('dst_', metadata)).toBe(resourceId('dst_', { uid }));
      expect(requestsForeignId('dst_', metadata)).toBe(true);
    },
  );

  test('ignores an annotation that belongs to another kind', () => {
    expect(resourceId('dst_', { uid, annotations: { 'posthorn.dev/id': 'rte_abcdefghijklmnopqrstuvwxyz' } })).toBe(
      resourceId('dst_', { uid }),
    );
  });
});

describe('newTimedId', () => {
  test('names its shard and its time', () => {
    assertProperty(
      fc.property(fc.integer({ min: 0, max: 1295 }), fc.integer({ min: 0, max: 8_640_000_000_000 }), (shard, nowMs) => {
        expect(parseTimedId(newTimedId('msg_', shard, nowMs))).toEqual({ shard, createdAtMs: nowMs });
        expect(shardOfTimedId(newTimedId('evt_', shard, nowMs))).toBe(shard);
      }),
    );
  });

  test('sorts by time within a shard', () => {
    expect(newTimedId('evt_', 3, 1_700_000_000_000) < newTimedId('evt_', 3, 1_700_000_000_001)).toBe(true);
  });

  test.each(['', 'msg_', 'msg_00', 'dst_00abcdefghijklmnopqrstuvwxy', '../../etc/passwd'])('%j is not such an id', (id) => {
    expect(parseTimedId(id)).toBeNull();
    expect(shardOfTimedId(id)).toBeNull();
  });
});
