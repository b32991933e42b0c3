import type { Page, Route } from 'playwright-core';

/** The next request to the path, which has no query, reaches the API, and the page does not get the answer. */
export async function loseAnswer(page: Page, path: string): Promise<void> {
  await page.route(
    `**${path}`,
    async (route) => {
      await answerTo(route);
      await route.abort();
    },
    { times: 1 },
  );
}

/** The next request to the path, which has no query, reaches the API, and the page gets the answer once the function is called. */
export async function heldAnswer(page: Page, path: string): Promise<() => void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  await page.route(
    `**${path}`,
    async (route) => {
      const response = await answerTo(route);
      await promise;
      await route.fulfill({ response });
    },
    { times: 1 },
  );
  return resolve;
}

/** Answer of the API. `body`: sent instead of that of the page. */
export async function answerTo(route: Route, body?: unknown): ReturnType<Route['fetch']> {
  // The browser would send it. Without it the API rejects the request of the console.
  const headers = { ...route.request().headers(), 'sec-fetch-site': 'same-origin' };
  const answer = await route.fetch({ headers, ...(body !== undefined && { postData: JSON.stringify(body) }) });
  if (!answer.ok()) throw new Error(`the API answered ${answer.status()}`);
  return answer;
}
