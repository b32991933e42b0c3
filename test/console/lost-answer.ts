import type { Page } from 'playwright-core';

/** The next request to the path, which has no query, reaches the API, and the page does not get the answer. */
export async function loseAnswer(page: Page, path: string): Promise<void> {
  await page.route(
    `**${path}`,
    async (route) => {
      // The browser would send it. Without it the API takes nobody for a reader of the console.
      const headers = { ...route.request().headers(), 'sec-fetch-site': 'same-origin' };
      const answer = await route.fetch({ headers });
      if (!answer.ok()) throw new Error(`the API answered ${answer.status()}`);
      await route.abort();
    },
    { times: 1 },
  );
}
