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
  test.each<[string, Partial<NewAttempt>, 'short' | 'long' | 'both']>([
    ['without a body', {}, 'short'],
    ['with a short body', { responseBody: 'two words\nand a line' }, 'short'],
    ['with a long body', { responseBody: 'x'.repeat(100) }, 'long'],
    ['with a body of wide characters', { responseBody: 'é'.repeat(40) }, 'long'],
    ['that looks like the long form', { responseBody: '[1]' }, 'short'],
    ['that timed out', { responseStatus: null, responseBody: null, errorType: 'timeout', errorMessage: 'no answer' }, 'both'],
    [
      'that failed with a long body',
      { responseStatus: 500, responseBody: 'x'.repeat(100), errorType: 'http_error', errorMessage: 'the receiver answered 500' },
      'both',
    ],
    ['that was refused', { responseStatus: 500, errorType: 'http_error', errorMessage: 'the receiver answered 500' }, 'short'],
  ])('%s', (_, changes, form) => {
    const attempt = { ...plain, ...changes };
    const { short, long } = encodeAttempt(attempt);
    expect([short !== '', long !== '']).toEqual([form !== 'long', form !== 'short']);
    expect(Buffer.byteLength(short)).toBeLessThanOrEqual(64);
    expect(decodeAttempt(3, long || short)).toEqual({ attemptNumber: 3, ...attempt });
  });
});

test.each<[string, Partial<NewAttempt>]>([
  ['a body', { responseStatus: 500, errorType: 'http_error', responseBody: 'é'.repeat(100), errorMessage: 'the receiver answered 500' }],
  [
    'an error message',
    { responseStatus: null, responseBody: null, errorType: 'tls', errorMessage: 'the certificate ended yesterday, '.repeat(3) },
  ],
])('the short form beside a long one has the beginning of %s', (_, changes) => {
  const attempt = { ...plain, ...changes };
  const { short } = encodeAttempt(attempt);
  expect(Buffer.byteLength(short)).toBeLessThanOrEqual(64);
  const read = decodeAttempt(1, short);
  const begins = attempt.responseStatus === null ? read?.errorMessage : read?.responseBody;
  expect(begins?.length).toBeGreaterThan(15);
  expect((attempt.responseBody ?? attempt.errorMessage)?.startsWith(begins ?? '-')).toBe(true);
  expect(read).toMatchObject({ errorType: attempt.errorType, responseStatus: attempt.responseStatus });
});

test('what is no attempt is null', () => {
  expect(decodeAttempt(1, '')).toBeNull();
  expect(decodeAttempt(1, 'nonsense')).toBeNull();
});
