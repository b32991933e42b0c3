import { expect, test } from '@jest/globals';
import { createLogger } from './role-logger.ts';

function logged(write: (logger: ReturnType<typeof createLogger>) => void): string {
  const lines: string[] = [];
  write(createLogger('api', { logLevel: 'info' }, { write: (line) => void lines.push(line) }));
  return lines.join('');
}

test('secrets are not written, however deep the object that carries them', () => {
  const text = logged((logger) => {
    logger.info(
      { token: 's3cret', headers: { authorization: 'Bearer s3cret', 'x-api-key': 's3cret' }, a: { b: { headers: { cookie: 's3cret' } } } },
      'request',
    );
  });
  expect(text).not.toContain('s3cret');
  expect(JSON.parse(text)).toMatchObject({ role: 'api', level: 'info', msg: 'request', headers: { authorization: '[redacted]' } });
});

test('an error is written without the command that a client has hung on it', () => {
  const error = Object.assign(new Error('WRONGTYPE', { cause: new Error('below') }), { command: { name: 'set', args: ['key', 's3cret'] } });
  const line = JSON.parse(logged((logger) => logger.error({ err: error }, 'failed')));
  expect(line.err).toMatchObject({ message: 'WRONGTYPE', cause: { message: 'below' } });
  expect(JSON.stringify(line)).not.toContain('s3cret');
});
