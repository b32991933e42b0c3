import { expect, test } from '@jest/globals';
import { liquidEngine } from './liquid.ts';

const run = (code: string) =>
  liquidEngine.run({ organization: 'org_a', event: '{"id":"evt_1"}', payload: '{"n":5}', code, warn: () => {} });

test.each([
  ' \n ',
  '{% comment %}{{ payload.n }}{% endcomment %}',
  '{% # payload.n %}',
  '{% assign n = payload.n %}\n{% capture text %}Order {{ n }}{% endcapture %}',
  '{% if payload.n %}{% else %} {% endif %}',
  '{% for n in payload %}{% if n %}{% break %}{% endif %}{% endfor %}',
  '{% case payload.n %}{% when 5 %}{% assign n = 5 %}{% endcase %}{% unless payload.n %}{% endunless %}',
  '{% liquid\nassign n = 5\n%}',
])('a template that writes nothing for any event is refused by the check and when it runs: %j', async (code) => {
  const message = 'the template has no output for any event';
  await expect(liquidEngine.check(code)).rejects.toThrow(message);
  await expect(run(code)).rejects.toThrow(message);
});

test.each([
  ['{{ payload.missing }}', null],
  ['{% if payload.n == 6 %}six{% endif %}', null],
  ['{% if payload.n == 5 %}{{ payload.n }}{% endif %}', '5'],
  ['{% liquid\nassign n = payload.n\necho n\n%}', '5'],
  ['{% case payload.n %}{% when 5 %}five{% endcase %}', 'five'],
  ['{% raw %}{{ n }}{% endraw %}', '{{ n }}'],
  ['{% increment n %}', '0'],
  ['{% cycle "a", "b" %}', 'a'],
])('a template that may write something is taken: %j', async (code, output) => {
  await liquidEngine.check(code);
  expect(await run(code)).toBe(output);
});
