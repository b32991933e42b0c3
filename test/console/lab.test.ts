import { expect, test } from '@jest/globals';
import type { Locator } from 'playwright-core';
import { accessibilityViolations } from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';
import { consoleSuite } from './console-suite.ts';
import { loseAnswer } from './lost-answer.ts';

const script = '<img src=x onerror="document.title=\'taken\'"><script>document.title="taken"</script>';

const suite = consoleSuite();

test('the Lab tries a filter and a transform on events that came in, saves them, and shows what others wrote as text', async () => {
  const { rest, standalone } = suite;
  const page = await suite.open('o/default/lab');
  await page.getByRole('heading', { name: 'No event yet' }).waitFor();
  await page.getByRole('region', { name: 'Command' }).waitFor();

  await suite.made('sources', { name: 'shop' });
  // With a number that JavaScript would round.
  const response = await fetch(`${standalone.url}/ingest/default/shop`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"total":1500,"order":12345678901234567890}',
  });
  expect(response.ok).toBe(true);
  await suite.sent('shop', { total: 20, note: script });
  await suite.sent('shop', { filler: 'x'.repeat(300_000) });

  // The first look at an event is refused, and made again when the API says.
  let refused = 0;
  await page.route('**/filters/test', async (route) => {
    refused += 1;
    if (refused > 1) return await route.continue();
    await route.fulfill({ status: 429, headers: { 'retry-after': '1' }, body: '{"error":"too many"}' });
  });
  await page.goto(`${standalone.url}/console/o/default/lab?source=shop`);
  const text = page.getByLabel('Logic and conditions, as JSON');
  await text.fill('{"logic":"AND","conditions":[{"field":"payload.total","operator":"gt","value":1000}]}');
  await text.press('Control+Enter');
  const results = page.getByRole('region', { name: 'Results' });
  await results.getByText('1 passes, 1 held back, 0 failed, 1 skipped', { exact: true }).waitFor();
  expect(refused).toBe(3);
  const row = (word: string): Locator => results.getByRole('row').filter({ hasText: word });
  await row('Held back').getByText('payload.total gt 1000 is not met').waitFor();
  await row('Skipped').getByText('Its payload has 300 KB.').waitFor();
  await row('Passes').getByRole('link', { name: /^evt_/ }).waitFor();
  await page.getByLabel('Name').fill('Large orders');
  await page.getByRole('button', { name: 'Save as new' }).click();
  await page.waitForURL('**id=flt_**');
  const { body: filter } = await rest.send('GET', '/api/filters/large-orders');
  expect(filter).toMatchObject({ logic: 'AND', conditions: [{ field: 'payload.total', operator: 'gt', value: 1000 }] });

  await suite.made('transforms', { name: 'to chat', code: '{"text": "hello"}' });
  await page.goto(`${standalone.url}/console/o/default/lab?kind=transform&id=to-chat&events=10`);
  const code = page.getByLabel('Code');
  await code.fill('{ "order": payload.order, "note": payload.note }');
  await page.getByRole('button', { name: 'Run' }).click();
  await results.getByText('2 transformed, 0 not delivered, 0 failed, 1 skipped', { exact: true }).waitFor();
  const diff = results.getByRole('table', { name: /^Output for evt_/ });
  await diff.getByText('onerror').first().waitFor();
  expect(await accessibilityViolations(page)).toEqual([]);
  await results.getByRole('button', { name: 'Show the output' }).click();
  // The line is the same on both sides, with all digits.
  await diff.locator('tr.same').getByText('"order": 12345678901234567890').waitFor();
  await page.getByRole('button', { name: 'Save to chat' }).click();
  await page.getByText('Saved.').waitFor();
  const { body: transform } = await rest.send('GET', '/api/transforms/to-chat');
  expect(transform.code).toBe('{ "order": payload.order, "note": payload.note }');

  await page.goto(`${standalone.url}/console/o/default/lab?kind=schema&events=10`);
  await page.getByLabel('JSON Schema').fill('{"required":["total"]}');
  await page.getByLabel('Name').fill('Order');
  await page.getByRole('button', { name: 'Save as new' }).click();
  await page.waitForURL('**id=sch_**');
  await page.getByRole('button', { name: 'Run' }).click();
  await results.getByText('2 valid, 0 invalid, 0 failed, 1 skipped', { exact: true }).waitFor();

  expect(await page.title()).not.toContain('taken');
  expect(await page.locator('main img').count()).toBe(0);
  suite.expectSound();
}, 180_000);

test('the Lab does not save over what another has saved meanwhile, and makes one object of a request that is sent twice', async () => {
  const { rest } = suite;
  const id = await suite.made('filters', { name: 'Shared', conditions: [{ field: 'payload.a', operator: 'exists' }] });
  const read = async () => (await rest.send('GET', `/api/filters/${id}`)).body.conditions[0].field;
  const change = (field: string) => rest.send('PATCH', `/api/filters/${id}`, { conditions: [{ field, operator: 'exists' }] });
  const page = await suite.open(`o/default/lab?id=${id}`);
  const text = page.getByLabel('Logic and conditions, as JSON');
  const save = page.getByRole('button', { name: 'Save Shared' });
  const type = (field: string) => text.fill(JSON.stringify({ logic: 'OR', conditions: [{ field, operator: 'exists' }] }));
  await text.waitFor();
  await type('payload.mine');
  await change('payload.theirs');
  await save.click();
  const conflict = page.getByRole('alert').filter({ hasText: 'Shared was changed meanwhile.' });
  await conflict.waitFor();
  await page.getByRole('table', { name: 'What differs' }).getByText('payload.theirs').waitFor();
  expect([await read(), await save.isDisabled()]).toEqual(['payload.theirs', true]);
  expect(await accessibilityViolations(page)).toEqual([]);
  await conflict.getByRole('button', { name: 'Keep this text' }).click();
  await save.click();
  await page.getByText('Saved.').waitFor();
  expect(await read()).toBe('payload.mine');

  // The text has another form than the stored one, and is no change of another.
  await type('payload.mine.too');
  await save.click();
  await page.getByText('Saved.').waitFor();
  await type('payload.mine.again');
  await change('payload.theirs');
  await save.click();
  await conflict.getByRole('button', { name: 'Take what is saved' }).click();
  await eventually(async () => expect(await text.inputValue()).toContain('payload.theirs'));
  await conflict.waitFor({ state: 'detached' });

  await page.getByRole('link', { name: 'YAML' }).click();
  await page.getByRole('region', { name: 'Manifest' }).getByText('payload.theirs').waitFor();
  await page.getByRole('navigation', { name: 'Breadcrumb' }).getByRole('link').click();
  await page.waitForURL(`**/lab?kind=filter&id=${id}`);
  await eventually(async () => expect(await text.inputValue()).toContain('payload.theirs'));

  await loseAnswer(page, '/filters');
  await page.getByLabel('Name').fill('Once');
  await page.getByRole('button', { name: 'Save as new' }).click();
  await page.getByText('The API does not answer.').waitFor();
  await page.getByRole('button', { name: 'Save as new' }).click();
  await page.waitForURL((url) => (url.searchParams.get('id') ?? id) !== id);
  const { data } = (await rest.send('GET', '/api/filters')).body;
  expect(data.filter(({ name }: { name: string }) => name === 'Once')).toHaveLength(1);
  suite.expectSound();
}, 180_000);

test('the Lab keeps what was typed and not saved, and nothing else', async () => {
  const { rest } = suite;
  const id = await suite.made('transforms', { name: 'Drafted', code: '"stored"' });
  const page = await suite.open(`o/default/lab?kind=transform&id=${id}`);
  const code = page.getByLabel('Code');
  const codeIs = (text: string): Promise<void> => eventually(async () => expect(await code.inputValue()).toBe(text));
  const lookAway = async (): Promise<void> => {
    await page.getByRole('link', { name: 'Events', exact: true }).click();
    await page.getByRole('heading', { name: 'Events', exact: true }).waitFor();
    await page.goBack();
  };
  /** Holds the next write until it is called. */
  const heldWrite = async (pattern: string, method: string): Promise<{ isSent: Promise<void>; release: () => void }> => {
    const sent = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    await page.route(pattern, async (route) => {
      if (route.request().method() !== method) return await route.fallback();
      sent.resolve();
      await gate.promise;
      await route.continue();
    });
    return { isSent: sent.promise, release: gate.resolve };
  };

  // What is undone, or typed back, is no draft: what another writes meanwhile is shown.
  await codeIs('"stored"');
  await code.fill('"typed"');
  await lookAway();
  await codeIs('"typed"');
  await page.getByRole('button', { name: 'Undo the changes' }).click();
  await codeIs('"stored"');
  await rest.send('PATCH', `/api/transforms/${id}`, { code: '"of another"' });
  await lookAway();
  await codeIs('"of another"');
  await code.fill('"typed"');
  await code.fill('"of another"');
  await rest.send('PATCH', `/api/transforms/${id}`, { code: '"of a third"' });
  await lookAway();
  await codeIs('"of a third"');

  // What is typed while a save is under way is a draft after it.
  const update = await heldWrite(`**/transforms/${id}`, 'PATCH');
  await code.fill('"sent"');
  await page.getByRole('button', { name: 'Save Drafted' }).click();
  await update.isSent;
  await code.fill('"sent, and more"');
  update.release();
  await page.getByRole('button', { name: 'Save Drafted', disabled: false }).waitFor();
  await lookAway();
  await codeIs('"sent, and more"');
  await page.getByRole('button', { name: 'Undo the changes' }).click();
  await codeIs('"sent"');

  // The text stands still while a new object is made of it.
  const create = await heldWrite('**/transforms', 'POST');
  await page.getByLabel('Name').fill('Copy of it');
  await page.getByRole('button', { name: 'Save as new' }).click();
  await create.isSent;
  await eventually(async () => expect([await code.isEditable(), await page.getByLabel('Language').isEnabled()]).toEqual([false, false]));
  create.release();
  await page.waitForURL((url) => (url.searchParams.get('id') ?? id) !== id);
  await codeIs('"sent"');
  expect(await code.isEditable()).toBe(true);
  suite.expectSound();
}, 180_000);
