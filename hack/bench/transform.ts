// Transforms and schema checks a second through one process of the sandbox, and beside each the bare library in the same run:
//   node hack/bench/transform.ts [seconds]
import variant from '@jitl/quickjs-wasmfile-release-sync';
import { Ajv2020 } from 'ajv/dist/2020.js';
import jsonata from 'jsonata';
import { Liquid } from 'liquidjs';
import { newQuickJSWASMModuleFromVariant } from 'quickjs-emscripten-core';
import { systemClock } from '../../src/runtime/system-clock.ts';
import { describeEvent } from '../../src/sandbox/event-description.ts';
import type { TransformType } from '../../src/sandbox/jobs.ts';
import { Sandbox } from '../../src/sandbox/sandbox.ts';
import { perSecond, report } from './lib/report.ts';

const [seconds = 5] = process.argv.slice(2).map(Number);
const inFlight = 32;

const lines = Array.from({ length: 5 }, (_, i) => ({ sku: `sku-${i}`, count: i + 1, price: 9.5 * i }));
const payload = Buffer.from(JSON.stringify({ id: 'o-4711', customer: { name: 'Ada', country: 'NO' }, note: 'x'.repeat(120), lines }));
const headers: [string, string][] = [
  ['content-type', 'application/json'],
  ['x-kind', 'order'],
];
const description = describeEvent({
  id: 'evt_1',
  source: 'shop',
  receivedAtMs: 0,
  method: 'POST',
  contentType: 'application/json',
  query: '',
  headers,
});
const event = { ...JSON.parse(description), payload: JSON.parse(payload.toString()) };
const codes: Record<TransformType, string> = {
  jsonata: '{"order": payload.id, "customer": payload.customer.name, "total": $sum(payload.lines.(count * price))}',
  javascript:
    'function transform({ payload }) { return { order: payload.id, total: payload.lines.reduce((sum, line) => sum + line.count * line.price, 0) }; }',
  liquid: '{"order": {{ payload.id | json }}, "lines": {{ payload.lines | size }}}',
};
const schema = {
  type: 'object',
  required: ['id', 'lines'],
  properties: { id: { type: 'string' }, lines: { type: 'array', items: { type: 'object', required: ['sku'] } } },
};

const sandbox = new Sandbox({ clock: systemClock, processes: 1 });
try {
  const rows: [string, string][] = [];
  for (const type of ['jsonata', 'javascript', 'liquid'] as const) {
    const work = () => sandbox.transform({ organization: 'org_a' }, { type, code: codes[type] }, { description, payload });
    rows.push([`${type}, sandbox`, perSecond(await rate(work, inFlight))], [`${type}, bare library`, perSecond(await bare(type))]);
  }
  const text = JSON.stringify(schema);
  rows.push([
    'schema, sandbox',
    perSecond(await rate(() => sandbox.validate({ organization: 'org_a' }, [text], payload, { maxProblems: 1 }), inFlight)),
  ]);
  const isValid = new Ajv2020().compile(schema);
  rows.push(['schema, bare library', perSecond(await rate(async () => isValid(JSON.parse(payload.toString())), 1))]);
  report('transform', `one process of the sandbox, ${payload.length} bytes, ${inFlight} under way`, rows);
} finally {
  sandbox.close();
}

/** Rate of work that begins again as often as it ends, after a second of warming up. */
async function rate(work: () => Promise<unknown>, parallel: number): Promise<number> {
  await loop(work, parallel, 1000);
  const startedAt = performance.now();
  const done = await loop(work, parallel, seconds * 1000);
  return (done / (performance.now() - startedAt)) * 1000;
}

async function loop(work: () => Promise<unknown>, parallel: number, forMs: number): Promise<number> {
  const until = performance.now() + forMs;
  let done = 0;
  const one = async (): Promise<void> => {
    while (performance.now() < until) {
      await work();
      done++;
    }
  };
  await Promise.all(Array.from({ length: parallel }, one));
  return done;
}

/** One evaluation after the other in this process: JSONata and Liquid compiled before, QuickJS in a new context each time. */
async function bare(type: TransformType): Promise<number> {
  switch (type) {
    case 'jsonata': {
      const expression = jsonata(codes.jsonata);
      return await rate(async () => JSON.stringify(await expression.evaluate(event)), 1);
    }
    case 'liquid': {
      const liquid = new Liquid();
      const template = liquid.parse(codes.liquid);
      return await rate(async () => liquid.renderSync(template, event), 1);
    }
    case 'javascript': {
      const quickJs = await newQuickJSWASMModuleFromVariant('default' in variant ? variant.default : variant);
      const input = JSON.stringify(event);
      return await rate(async () => {
        const context = quickJs.newContext();
        context.unwrapResult(context.evalCode(codes.javascript)).dispose();
        const output = context.unwrapResult(context.evalCode(`JSON.stringify(transform(${input}))`));
        context.getString(output);
        output.dispose();
        context.dispose();
      }, 1);
    }
  }
}
