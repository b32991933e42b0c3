import { expect, test } from '@jest/globals';
import { mergeMetrics } from './merged-metrics.ts';

test('the samples of one metric are together, distinguished by their process', () => {
  const text = (value: number) =>
    `# HELP up Whether it runs.\n# TYPE up gauge\nup ${value}\n\n# HELP hits Requests.\n# TYPE hits counter\nhits{path="/a b"} ${value}\n`;
  expect(
    mergeMetrics([
      { process: 'api', text: text(1) },
      { process: 'delivery-1', text: text(2) },
      { process: 'delivery-2', text: '' },
    ]),
  ).toBe(
    `# HELP up Whether it runs.
# TYPE up gauge
up{process="api"} 1
up{process="delivery-1"} 2
# HELP hits Requests.
# TYPE hits counter
hits{process="api",path="/a b"} 1
hits{process="delivery-1",path="/a b"} 2
`,
  );
});
