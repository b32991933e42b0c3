// The console in a real browser, against a standalone of its own:
//   node hack/bench/console.ts [rounds] [events in the list] [seconds]
// CPU of the page's main thread until it is interactive; a change of the screen, warm; scrolling through the list; a tail at 500 events/s.
import { setTimeout as sleep } from 'node:timers/promises';
import type { CDPSession, Page } from 'playwright-core';
import { buildConsole } from '../../test/console/built-console.ts';
import { RestClient } from '../../test/e2e/rest.ts';
import { openPage, startBrowser } from '../../test/support/browser.ts';
import { eventually } from '../../test/support/eventually.ts';
import { startStandalone } from '../../test/support/program.ts';
import { inParallel } from './lib/in-parallel.ts';
import { ms, percentile, report } from './lib/report.ts';

const [rounds = 5, listed = 10_000, seconds = 10] = process.argv.slice(2).map(Number);
const tailPerSecond = 500;

await buildConsole();
const browser = await startBrowser();
const standalone = await startStandalone({ environment: { POSTHORN_HOST: '127.0.0.1' } });
const rest = new RestClient(standalone.url, standalone.key);
try {
  await rest.send('POST', '/api/sources', { name: 'shop' });
  await inParallel(listed, sent);
  const cold = [];
  for (let round = 0; round < rounds; round += 1) cold.push(await cpuToInteractive());
  const { page, close } = await openPage(browser, { viewport: { width: 1280, height: 900 } });
  const session = await page.context().newCDPSession(page);
  const changes = await routeChanges(page);
  const scrolling = await traced(session, () => scrollToTheEnd(page));
  await page.goto(address('live?topic=events'));
  await page.getByText('Connected').waitFor();
  const tailing = await traced(session, () => tail());
  await close();
  report('console', `the console in Chromium, ${listed} events`, [
    ['CPU to interactive, median', ms(percentile(cold, 0.5))],
    ['change of the screen, warm, median', ms(percentile(changes, 0.5))],
    ['change of the screen, warm, slowest', ms(percentile(changes, 1))],
    ...rowsOf(`scrolling ${listed} rows`, scrolling),
    ...rowsOf(`tail at ${tailPerSecond}/s`, tailing),
  ]);
} finally {
  await browser.close();
  await standalone.stop();
}

function address(path: string): string {
  return `${standalone.url}/console/o/default/${path}`;
}

async function sent(number: number): Promise<void> {
  const body = JSON.stringify({ type: 'order.paid', number });
  const answer = await fetch(`${standalone.url}/ingest/default/shop`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  });
  if (!answer.ok) throw new Error(`an event was answered ${answer.status}`);
  await answer.arrayBuffer();
}

/**
 * Milliseconds of CPU that the main thread took until the overview shows what it has read, with an empty cache. What the commands of this
 * benchmark take there is not counted.
 */
async function cpuToInteractive(): Promise<number> {
  const { page, close } = await openPage(browser, { viewport: { width: 1280, height: 900 } });
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable', { timeDomain: 'threadTicks' });
  await page.goto(address('overview'));
  await page.getByText('Events received').waitFor();
  const { metrics } = await session.send('Performance.getMetrics');
  await close();
  const secondsOf = (wanted: string): number => metrics.find(({ name }) => name === wanted)?.value ?? Number.NaN;
  return 1000 * (secondsOf('TaskDuration') - secondsOf('DevToolsCommandDuration'));
}

/** Milliseconds from the click on a link until the heading of the screen shows and is drawn. */
async function routeChanges(page: Page): Promise<number[]> {
  await page.goto(address('overview'));
  await page.getByText('Events received').waitFor();
  const taken: number[] = [];
  for (let round = 0; round < 2 * rounds; round += 1)
    for (const [link, title] of [
      ['Routes', 'Routes'],
      ['Deliveries', 'Deliveries'],
      ['Overview', 'Overview'],
    ] as const) {
      const took = await page.evaluate(
        `new Promise((resolve) => {
          const begin = performance.now();
          const look = () => document.querySelector('h1')?.textContent === '${title}'
            ? requestAnimationFrame(() => resolve(performance.now() - begin)) : requestAnimationFrame(look);
          [...document.querySelectorAll('nav a')].find(({ textContent }) => textContent.trim() === '${link}').click();
          requestAnimationFrame(look);
        })`,
      );
      // The first time reads what the screen shows.
      if (round > 0) taken.push(Number(took));
      await sleep(300);
    }
  return taken;
}

async function scrollToTheEnd(page: Page): Promise<void> {
  await page.goto(address('events'));
  await page.getByText(' events').last().waitFor();
  await page.getByRole('region', { name: 'events' }).focus();
  const until = Date.now() + seconds * 3000;
  await eventually('the end of the list', seconds * 6000, async () => {
    await page.mouse.move(640, 500);
    for (let turn = 0; turn < 20; turn += 1) {
      await page.mouse.wheel(0, 1500);
      await sleep(16);
    }
    const shown = await page.evaluate('document.querySelector("[aria-rowcount]").getAttribute("aria-rowcount")');
    return Number(shown) > listed * 0.99 || Date.now() > until;
  });
}

async function tail(): Promise<void> {
  const beganAt = Date.now();
  let number = 0;
  await Promise.all(
    Array.from({ length: 16 }, async () => {
      while (Date.now() - beganAt < seconds * 1000)
        if (number < ((Date.now() - beganAt) * tailPerSecond) / 1000) {
          number += 1;
          await sent(number);
        } else await sleep(2);
    }),
  );
}

interface Trace {
  /** Milliseconds. */
  longestTask: number;
  tasksAbove50: number;
  scriptPerFrame: number;
  frames: number;
}

/** What the main thread of the page does meanwhile. */
async function traced(session: CDPSession, act: () => Promise<void>): Promise<Trace> {
  const events: { name: string; ph: string; ts: number; dur?: number; pid: number; tid: number; args: { name?: string } }[] = [];
  session.on('Tracing.dataCollected', ({ value }) => void events.push(...(value as unknown as typeof events)));
  const categories = ['toplevel', 'devtools.timeline', 'disabled-by-default-devtools.timeline', 'v8.execute', '__metadata'];
  await session.send('Tracing.start', { categories: categories.join(','), transferMode: 'ReportEvents' });
  await act();
  const ended = new Promise((resolve) => session.once('Tracing.tracingComplete', resolve));
  await session.send('Tracing.end');
  await ended;
  const mains = new Set(
    events.filter(({ name, args }) => name === 'thread_name' && args.name === 'CrRendererMain').map(({ pid, tid }) => `${pid} ${tid}`),
  );
  const all = events.filter(({ pid, tid }) => mains.has(`${pid} ${tid}`));
  const named = (...names: string[]) => all.filter(({ name, ph }) => ph === 'X' && names.includes(name));
  const tasks = named('RunTask', 'ThreadControllerImpl::RunTask').map(({ dur = 0 }) => dur / 1000);
  const scripts = named('FunctionCall', 'EvaluateScript', 'TimerFire', 'FireAnimationFrame', 'RunMicrotasks', 'EventDispatch');
  const frames = all.filter(({ name }) => name === 'Commit' || name === 'UpdateLayerTree').length;
  return {
    longestTask: Math.max(0, ...tasks),
    tasksAbove50: tasks.filter((task) => task > 50).length,
    scriptPerFrame: covered(scripts) / 1000 / Math.max(1, frames),
    frames,
  };
}

/** Microseconds in which at least one of them runs: they nest. */
function covered(events: readonly { ts: number; dur?: number }[]): number {
  let sum = 0;
  let end = 0;
  for (const { ts, dur = 0 } of events.toSorted((one, other) => one.ts - other.ts)) {
    sum += Math.max(0, ts + dur - Math.max(ts, end));
    end = Math.max(end, ts + dur);
  }
  return sum;
}

function rowsOf(what: string, { longestTask, tasksAbove50, scriptPerFrame, frames }: Trace): [string, string][] {
  return [
    [`${what}: scripting per frame`, ms(scriptPerFrame)],
    [`${what}: longest task`, ms(longestTask)],
    [`${what}: tasks above 50 ms`, String(tasksAbove50)],
    [`${what}: frames`, String(frames)],
  ];
}
