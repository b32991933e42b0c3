import { existsSync } from 'node:fs';
import axe from 'axe-core';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';

const flags = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** Browsers of Debian. The first has no windows, so that a page opens in a third of the time. */
const ofSystem = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium'];

/** Chromium of the system; one for each suite, which closes it. POSTHORN_CHROMIUM names it; `hack/test` installs it. */
export async function startBrowser(): Promise<Browser> {
  const named = process.env['POSTHORN_CHROMIUM'];
  const executablePath = (named ? [named] : ofSystem).find(existsSync);
  if (executablePath === undefined) throw new Error('there is no Chromium: run hack/test, or name one in POSTHORN_CHROMIUM');
  return await chromium.launch({ executablePath, args: flags });
}

/** A page, and what went wrong in it since it was opened. */
export interface WatchedPage {
  page: Page;
  /** Errors on the console of the browser and what no script has caught; of answers of the API, which the page shows, none. */
  errors: string[];
  /** Directive and blocked address of each `securitypolicyviolation`. */
  policyViolations: string[];
  /** Closes it with its cookies. */
  close(): Promise<void>;
}

const tellViolations = `document.addEventListener('securitypolicyviolation', (event) =>
  void tellPolicyViolation(event.effectiveDirective + ' ' + event.blockedURI + ' ' + event.sample));`;

export interface PageOptions extends BrowserContextOptions {
  /**
   * The test moves the clock of the page on. In a page that is already loaded, a timer that fires while Playwright installs the clock reads 1970: the clock is there
   * before the page is.
   */
  movesClock?: boolean;
}

/** With cookies of its own. */
export async function openPage(browser: Browser, { movesClock = false, ...options }: PageOptions = {}): Promise<WatchedPage> {
  const context = await browser.newContext(options);
  if (movesClock) await context.clock.install();
  // A machine that is busy draws late.
  context.setDefaultTimeout(60_000);
  const page = await context.newPage();
  const errors: string[] = [];
  const policyViolations: string[] = [];
  await page.exposeFunction('tellPolicyViolation', (text: string) => void policyViolations.push(text));
  await page.addInitScript({ content: tellViolations });
  page.on('pageerror', (error) => errors.push(String(error)));
  page.on('console', (message) => {
    const { url } = message.location();
    const isAnswerOfApi = message.text().startsWith('Failed to load resource') && /\/api\//.test(url);
    // Another network of the machine came or went: the browser aborts what it reads ahead.
    const isOfMachine = message.text().includes('net::ERR_NETWORK_CHANGED');
    if (message.type() === 'error' && !isAnswerOfApi && !isOfMachine) errors.push(`${message.text()} (${url})`);
  });
  return {
    page,
    errors,
    policyViolations,
    close: async () => {
      // A handler of a request may still be at work.
      for (const each of context.pages()) await each.unrouteAll({ behavior: 'ignoreErrors' });
      await context.close();
    },
  };
}

export interface AccessibilityViolation {
  id: string;
  help: string;
  /** Selectors of the elements. */
  targets: string[];
}

/**
 * What axe finds against WCAG 2.2 A and AA in the current page. Its script comes by the debugger's protocol, which no policy of the page holds up.
 * `rules`: those alone.
 */
export async function accessibilityViolations(page: Page, { rules }: { rules?: string[] } = {}): Promise<AccessibilityViolation[]> {
  const runOnly = rules ?? ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];
  if (!(await page.evaluate("'axe' in window"))) await page.evaluate(`${axe.source};undefined`);
  return await page.evaluate(`axe.run({ runOnly: ${JSON.stringify(runOnly)}, resultTypes: ['violations'] }).then(({ violations }) =>
    violations.map(({ id, help, nodes }) => ({ id, help, targets: nodes.map(({ target }) => target.join(' ')) })))`);
}
