import { describe, expect, test } from '@jest/globals';
import type { FieldNode } from './field-tree.ts';
import type { Kind } from './kinds.ts';
import { mergeSchema } from './merge-schema.ts';

function nodeAt(kind: Kind, path: string): FieldNode | undefined {
  let node: FieldNode | undefined = mergeSchema(kind);
  for (const part of path.split('.')) {
    if (part === '[]') node = node?.type === 'list' ? node.item : undefined;
    else node = node?.type === 'object' ? node.fields.get(part) : undefined;
  }
  return node;
}

describe('how server-side apply merges', () => {
  test('references to objects are distinguished by their names', () => {
    expect(nodeAt('Route', 'spec.destinationRefs')).toMatchObject({ listType: 'map', keys: ['name'] });
  });

  test('methods are a set of values', () => {
    expect(nodeAt('Source', 'spec.allowedMethods')).toMatchObject({ listType: 'set' });
  });

  test('the conditions of a filter are one value, whose parts may be anything', () => {
    expect(nodeAt('Filter', 'spec.conditions')).toMatchObject({ listType: 'atomic' });
    expect(nodeAt('Filter', 'spec.conditions.[].value')).toEqual({ type: 'leaf', nullable: true });
  });

  test('a secret reference is one value, so that nobody owns its key without its name', () => {
    expect(nodeAt('Source', 'spec.signingSecretRef')).toMatchObject({ type: 'object', atomic: true });
  });

  test('blocks have an owner for each field', () => {
    expect(nodeAt('Destination', 'spec.http')).toMatchObject({ type: 'object', atomic: false });
  });

  test('conditions in a status are distinguished by their types', () => {
    expect(nodeAt('Route', 'status.conditions')).toMatchObject({ listType: 'map', keys: ['type'] });
  });

  test.each(['metadata.labels', 'metadata.annotations', 'data'])('%s of a Secret has an owner for each key', (path) => {
    expect(nodeAt('Secret', path)?.type).toBe('map');
  });
});
