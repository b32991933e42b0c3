import { expect, test } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import { signingKey, webhookSignature } from './signing.ts';

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';

test('the published vector of Standard Webhooks comes out', () => {
  const body = Buffer.from('{"test": 2432232314}');
  expect(webhookSignature([signingKey(secret)], 'msg_p5jXN8AQM9LWM0D4loKWxJek', 1_614_265_330, body)).toBe(
    'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  );
});

test('while a rotation lasts, holders of either secret can verify', () => {
  const other = `whsec_${Buffer.alloc(32, 9).toString('base64')}`;
  const timestamp = Math.floor(Date.now() / 1000);
  const signature = webhookSignature([signingKey(secret), signingKey(other)], 'msg_1', timestamp, Buffer.from('{"a":1}'));
  const headers = { 'webhook-id': 'msg_1', 'webhook-timestamp': String(timestamp), 'webhook-signature': signature };
  for (const each of [secret, other]) expect(new Webhook(each).verify('{"a":1}', headers)).toEqual({ a: 1 });
});

test('a secret with nothing in it is refused', () => {
  expect(() => signingKey('whsec_')).toThrow('signing secret');
});
