import { expect, test } from '@jest/globals';
import { attemptCurl } from './attempt-curl.ts';

const sentTo = { method: 'PUT', url: 'https://a.example/in?a=1&b=2', payloadCommand: "curl 'https://p.example/payload' -o payload" };

test('an attempt becomes commands with its headers, without those that curl makes', () => {
  const headers = { Host: 'a.example', 'content-length': '2', 'webhook-id': 'msg_1', 'x-team': "o'brien" };
  expect(attemptCurl(headers, sentTo)).toBe(
    [
      '# The payload of the event. A transform or the thin form sends another body.',
      "curl 'https://p.example/payload' -o payload",
      "curl -X PUT 'https://a.example/in?a=1&b=2' \\",
      "  -H 'webhook-id: msg_1' \\",
      "  -H 'x-team: o'\\''brien' \\",
      '  --data-binary @payload',
    ].join('\n'),
  );
});

test('masked values are listed', () => {
  expect(attemptCurl({ authorization: '••••oken' }, sentTo)).toContain('# Values with •••• are masked: write the real ones.');
});
