import { expect } from '@jest/globals';
import type { Page } from 'playwright-core';
import { eventually } from '../support/eventually.ts';

/**
 * Texts beyond the edge of the window or of a box that does not scroll, and boxes that scroll to the side although they are neither tables nor code.
 * A box that ends its text with an ellipsis may.
 */
const cutTexts = `(() => {
  const cut = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text = texts.nextNode(); text !== null; text = texts.nextNode()) {
    if (text.data.trim() === '' || !text.parentElement.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
    if (text.parentElement.closest('.vh, svg, dialog:not([open])') !== null) continue;
    const range = document.createRange();
    range.selectNodeContents(text);
    const { left, right, width } = range.getBoundingClientRect();
    if (width === 0) continue;
    let isScrolled = false;
    for (let box = text.parentElement; box !== null && !isScrolled; box = box.parentElement) {
      const { overflowX, textOverflow } = getComputedStyle(box);
      if (overflowX === 'auto' || overflowX === 'scroll') isScrolled = true;
      else if (overflowX !== 'visible' && textOverflow !== 'ellipsis') {
        const edge = box.getBoundingClientRect();
        // For screen readers alone.
        if (edge.width <= 1) isScrolled = true;
        else if (left < edge.left - 1 || right > edge.right + 1) cut.push(text.data.trim() + ' in ' + box.className);
      } else if (overflowX !== 'visible') isScrolled = true;
    }
    if (!isScrolled && (left < -1 || right > innerWidth + 1)) cut.push(text.data.trim());
  }
  for (const box of document.querySelectorAll('body *')) {
    const { overflowX } = getComputedStyle(box);
    if ((overflowX === 'auto' || overflowX === 'scroll') && box.scrollWidth > box.clientWidth + 1 && !box.matches('.table-wrap, .histogram-table, pre'))
      cut.push('what is in ' + box.tagName + ' ' + box.className + ' scrolls to the side');
  }
  return cut;
})()`;

/** Names of the tables, dialogs and drawers wider than their containers. */
const wider = `[...document.querySelectorAll('.table-wrap, .dialog, .drawer')]
  .filter((each) => each.scrollWidth > each.clientWidth)
  .map((each) => each.ariaLabel ?? each.innerText)`;

/** The page needs no scrolling to the side in a window of this width, once it is laid out for it. */
export async function expectNoSideScroll(page: Page, width: number): Promise<void> {
  await eventually(async () => {
    const [inner, content] = (await page.evaluate('[innerWidth, document.documentElement.scrollWidth]')) as [number, number];
    expect(inner).toBe(width);
    expect(content).toBeLessThanOrEqual(width);
  });
}

async function expectNothingCut(page: Page, width: number): Promise<void> {
  await expectNoSideScroll(page, width);
  await eventually(async () => expect(await page.evaluate(cutTexts)).toEqual([]));
}

/** The page needs no scrolling to the side, and cuts no text, in a window of 1280 pixels at a zoom of 200 %, and in one of 320 pixels. */
export async function expectToFit(page: Page): Promise<void> {
  const browser = await page.context().newCDPSession(page);
  // The browser's metrics at this zoom: half the pixels, each twice as dense.
  await browser.send('Emulation.setDeviceMetricsOverride', { width: 640, height: 512, deviceScaleFactor: 2, mobile: false });
  await eventually(async () => expect(await page.evaluate('devicePixelRatio')).toBe(2));
  await expectNothingCut(page, 640);
  await browser.send('Emulation.clearDeviceMetricsOverride');
  await browser.detach();
  await page.setViewportSize({ width: 320, height: 512 });
  await expectNothingCut(page, 320);
  // In wider windows, wide tables scroll.
  await eventually(async () => expect(await page.evaluate(wider)).toEqual([]));
}
