import { randomBytes } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { isSealed, Keyring } from './sealing.ts';

const context = { organization: 'org_a', kind: 'destination', name: 'dst_a', field: 'token' };
const old = { id: 'old', key: randomBytes(32) };
const next = { id: 'next', key: randomBytes(32) };

describe('Keyring', () => {
  test('opens what it sealed', () => {
    const ring = new Keyring([old]);
    const envelope = ring.seal('grün ✓', context);
    expect(isSealed(envelope)).toBe(true);
    expect(envelope).not.toContain('gr');
    expect(ring.open(envelope, context)).toBe('grün ✓');
  });

  test('seals with the newest key and opens with every key', () => {
    const envelope = new Keyring([old]).seal('x', context);
    const ring = new Keyring([next, old]);
    expect(ring.open(envelope, context)).toBe('x');
    expect(ring.seal('x', context)).toMatch(/^sealed\.v1\.next\./);
  });

  test.each(['organization', 'kind', 'name', 'field'] as const)('does not open an envelope moved to another %s', (part) => {
    const ring = new Keyring([old]);
    const envelope = ring.seal('x', context);
    expect(() => ring.open(envelope, { ...context, [part]: 'other' })).toThrow('does not open');
  });

  test('opens what was made for an object and origin for no other, and not when none are named; one that was made for none opens', () => {
    const ring = new Keyring([old]);
    const made = { ...context, madeFor: 'Destination shop https://shop.example' };
    const envelope = ring.seal('x', made);
    expect(ring.open(envelope, made)).toBe('x');
    expect(() => ring.open(envelope, { ...made, madeFor: 'Destination shop https://evil.example' })).toThrow('does not open');
    expect(() => ring.open(envelope, context)).toThrow('does not open');
    const earlier = ring.seal('x', context);
    expect(ring.open(earlier, made)).toBe('x');
    expect(new Keyring([next, old]).open(new Keyring([next, old]).reseal(earlier, made), made)).toBe('x');
  });

  test('does not open an altered envelope', () => {
    const ring = new Keyring([old]);
    const envelope = ring.seal('secret', context);
    const flipped = envelope.slice(0, -1) + (envelope.endsWith('A') ? 'B' : 'A');
    expect(() => ring.open(flipped, context)).toThrow('does not open');
  });

  test('says which key is missing', () => {
    const envelope = new Keyring([old]).seal('x', context);
    expect(() => new Keyring([next]).open(envelope, context)).toThrow('key old');
  });

  test.each(['', 'plain', 'sealed.v1.', 'sealed.v1.old.a.b'])('refuses the malformed envelope %j', (text) => {
    expect(() => new Keyring([old]).open(text, context)).toThrow('malformed');
  });
});
