import { describe, expect, test } from '@jest/globals';
import type { SentAs } from '../../core/sent-as.ts';
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

describe('what was not sent as is the default of its target', () => {
  const forms: [SentAs, number][] = [
    [{ isThin: true, scheme: null }, 1],
    [{ isThin: false, scheme: 'hmac-sha256' }, 1],
    [{ isThin: false, scheme: 'ed25519' }, 2],
    [{ isThin: true, scheme: 'both' }, 4],
  ];
  const outcomes: Partial<NewAttempt>[] = [
    {},
    { durationMs: 0 },
    { responseBody: 'x'.repeat(100) },
    { responseStatus: null, responseBody: null, errorType: 'timeout', errorMessage: 'no answer' },
  ];
  test.each(forms)('is read as it was written: %j', (sentAs) => {
    for (const changes of outcomes) {
      const attempt = { ...plain, ...changes, sentAs };
      const { short, long } = encodeAttempt(attempt);
      expect(decodeAttempt(3, long || short)).toEqual({ attemptNumber: 3, ...attempt });
      if (short !== '') expect(decodeAttempt(3, short)).toMatchObject({ sentAs, startedAtMs: attempt.startedAtMs });
    }
  });

  test.each(forms)('%j costs %d bytes, and the default none; a reader without support for it reads the same times', (sentAs, bytes) => {
    const [short, form] = [encodeAttempt(plain).short, encodeAttempt({ ...plain, sentAs }).short];
    expect(short).toBe(`${plain.startedAtMs.toString(36)} 12 200 - `);
    expect(form.length - short.length).toBe(bytes);
    const [started = '', duration] = form.split(' ');
    expect([Number.parseInt(started, 36), Number(duration)]).toEqual([plain.startedAtMs, plain.durationMs]);
  });
});

test('what is no attempt is null', () => {
  expect(decodeAttempt(1, '')).toBeNull();
  expect(decodeAttempt(1, 'nonsense')).toBeNull();
});
