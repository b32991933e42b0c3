import { afterAll, afterEach, beforeAll, expect } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { z } from 'zod';
import { RestClient } from '../e2e/rest.ts';
import { openPage, startBrowser, type WatchedPage } from '../support/browser.ts';
import { type Standalone, type StandaloneOptions, startStandalone } from '../support/program.ts';
import { buildConsole } from './built-console.ts';

const accepted = z.object({ eventId: z.string() });

/** What the suites of the console share: a browser, and a standalone without login. */
export interface ConsoleSuite {
  readonly browser: Browser;
  readonly standalone: Standalone;
  readonly rest: RestClient;
  /** Makes a resource; returns its id. */
  made(path: string, body: unknown): Promise<string>;
  /** An event of the source; returns its id. */
  sent(source: string, payload: unknown): Promise<string>;
  /** Opens a path below `/console/` in a page with cookies of its own. It closes after the test. */
  open(path: string, options?: Parameters<typeof openPage>[1]): Promise<Page>;
  /** The page that was opened last has written no error and broken no policy. */
  expectSound(): void;
}

/** Registers the hooks of the suite that calls it. `environment` and `args`: of its standalone. */
export function consoleSuite({ environment = {}, args = [] }: Partial<Pick<StandaloneOptions, 'environment' | 'args'>> = {}): ConsoleSuite {
  let browser: Browser;
  let standalone: Standalone;
  let rest: RestClient;
  let opened: WatchedPage | undefined;
  beforeAll(async () => {
    await buildConsole();
    browser = await startBrowser();
    standalone = await startStandalone({ args, environment: { POSTHORN_HOST: '127.0.0.1', ...environment } });
    rest = new RestClient(standalone.url, standalone.key);
  }, 240_000);
  afterEach(async () => {
    await opened?.close();
    opened = undefined;
  });
  afterAll(async () => {
    await browser?.close();
    await standalone?.stop();
  });
  return {
    get browser() {
      return browser;
    },
    get standalone() {
      return standalone;
    },
    get rest() {
      return rest;
    },
    async made(path, body) {
      const answer = await rest.send('POST', `/api/${path}`, body);
      if (answer.status !== 201) throw new Error(JSON.stringify(answer.body));
      return answer.body.id ?? (answer.body.data ?? answer.body.cronJob).id;
    },
    async sent(source, payload) {
      const response = await fetch(`${standalone.url}/ingest/default/${source}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(payload),
      });
      return accepted.parse(await response.json()).eventId;
    },
    async open(path, options = {}) {
      opened = await openPage(browser, options);
      await opened.page.goto(`${standalone.url}/console/${path}`);
      return opened.page;
    },
    expectSound() {
      expect({ errors: opened?.errors, policyViolations: opened?.policyViolations }).toEqual({ errors: [], policyViolations: [] });
    },
  };
}
