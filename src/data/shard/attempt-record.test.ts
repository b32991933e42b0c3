import { describe, expect, test } from '@jest/globals';
import { decodeAttempt, encodeAttempt, type NewAttempt } from './attempt-record.ts';

const plain: NewAttempt = {
  startedAtMs: 1_795_225_037_890,
  durationMs: 12,
  responseStatus: 200,
  responseBody: '',
  errorType: null,
  errorMessage: null,
};

describe('an attempt is read as it was written', () => {
  test.each<[string, Partial<NewAttempt>, 'short' | 'long']>([
    ['without a body', {}, 'short'],
    ['with a short body', { responseBody: 'two words\nand a line' }, 'short'],
    ['with a long body', { responseBody: 'x'.repeat(100) }, 'long'],
    ['with a body of wide characters', { responseBody: 'é'.repeat(40) }, 'long'],
    ['that looks like the long form', { responseBody: '[1]' }, 'short'],
    ['that timed out', { responseStatus: null, responseBody: null, errorType: 'timeout', errorMessage: 'no answer' }, 'long'],
    ['that was refused', { responseStatus: 500, errorType: 'http_error', errorMessage: 'the receiver answered 500' }, 'short'],
  ])('%s', (_, changes, form) => {
    const attempt = { ...plain, ...changes };
    const { short, long } = encodeAttempt(attempt);
    expect(form === 'short' ? long : short).toBe('');
    expect(Buffer.byteLength(short)).toBeLessThanOrEqual(64);
    expect(decodeAttempt(3, short || long)).toEqual({ attemptNumber: 3, ...attempt });
  });
});

test('what is no attempt is null', () => {
  expect(decodeAttempt(1, '')).toBeNull();
  expect(decodeAttempt(1, 'nonsense')).toBeNull();
});
