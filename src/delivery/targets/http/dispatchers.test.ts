import { expect, test } from '@jest/globals';
import { startReceiver } from '../../../../test/support/receiver.ts';
import { Dispatchers } from './dispatchers.ts';

test('a pool that was closed for want of use is made anew for the next attempt', async () => {
  const receiver = await startReceiver();
  const dispatchers = new Dispatchers({ connections: 1 });
  const rules = (i: number) => ({
    egress: { allowedCidrs: ['127.0.0.0/8', `10.${Math.floor(i / 256)}.${i % 256}.0/24`], allowedHosts: [] },
    tls: null,
    usesProxy: false,
  });
  try {
    const first = dispatchers.forRules(rules(0));
    const get = async () => (await first().request({ origin: receiver.url, path: '/', method: 'GET' })).body.text();
    expect(await get()).toBe('ok');
    for (let i = 1; i <= 1000; i++) dispatchers.forRules(rules(i))();
    expect(await get()).toBe('ok');
  } finally {
    await dispatchers.close();
    await receiver.close();
  }
});
