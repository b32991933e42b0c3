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

  // The first read of an event is refused, and retried after the API's delay.
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

  // A schema is tried as typed, before it is saved.
  await page.goto(`${standalone.url}/console/o/default/lab?kind=schema&events=10`);
  await page.getByLabel('JSON Schema').fill('{"required":["total","note"]}');
  await page.getByRole('button', { name: 'Run' }).click();
  await results.getByText('1 valid, 1 invalid, 0 failed, 1 skipped', { exact: true }).waitFor();
  await row('Invalid').getByText("must have required property 'note'").waitFor();
  await page.getByLabel('Name').fill('Order');
  await page.getByRole('button', { name: 'Save as new' }).click();
  await page.waitForURL('**id=sch_**');
  await page.getByLabel('JSON Schema').fill('{"required":["total"]}');
  await page.getByRole('button', { name: 'Run' }).click();
  await results.getByText('2 valid, 0 invalid, 0 failed, 1 skipped', { exact: true }).waitFor();

  expect(await page.title()).not.toContain('taken');
  expect(await page.locator('main img').count()).toBe(0);
  suite.expectSound();
}, 180_000);

test('the Lab tries an expression of a subscription and a schema of an event type on events that were sent, and saves them', async () => {
  const { rest, standalone } = suite;
  const page = await suite.open('o/default/lab?kind=expression');
  await page.getByRole('heading', { name: 'No event for webhook endpoints yet' }).waitFor();
  const eventTypeId = await suite.made('event-types', { name: 'order.paid' });
  await suite.made('event-types', { name: 'order.sent' });
  const applicationId = await suite.made('webhook-applications', { name: 'Customer' });
  const endpointId = await suite.made('webhook-endpoints', { applicationId, url: 'https://customer.example/one' });
  const copy = await suite.made('webhook-endpoints', { applicationId, url: 'https://customer.example/copy' });
  const id = await suite.made('webhook-subscriptions', {
    endpointId,
    eventTypeId,
    labelFilters: { region: 'eu' },
    filterExpression: 'true',
  });
  const send = async (eventType: string, payload: object | null, labels = { region: 'eu' }): Promise<void> =>
    expect((await rest.send('POST', '/api/send-event', { eventType, payload, labels })).status).toBe(201);
  await send('order.paid', { total: 20, note: script });
  await send('order.paid', { total: 150 });
  await send('order.paid', { total: 150 }, { region: 'us' });
  await send('order.paid', { note: 'no total' });
  await send('order.sent', { total: 300 });

  await page.goto(`${standalone.url}/console/o/default/lab?kind=expression&id=${id}&events=100`);
  const text = page.getByLabel('Filter expression, in CEL');
  const results = page.getByRole('region', { name: 'Results' });
  const row = (word: string): Locator => results.getByRole('row').filter({ hasText: word });
  await text.fill('event.data.total > 100.0');
  await text.press('Control+Enter');
  // The events of its own type alone, and its label filters before the expression.
  await results.getByText('1 sent, 3 held back, 0 failed', { exact: true }).waitFor();
  await row('The expression is false.').getByText('event.data.total is 20').waitFor();
  await row('The expression fails:').getByText('event.data.total is not there').waitFor();
  await row('label region is us, expected eu').waitFor();
  expect(await accessibilityViolations(page)).toEqual([]);
  await page.getByRole('button', { name: 'Save the subscription to order.paid' }).click();
  await page.getByText('Saved.').waitFor();
  const { body: saved } = await rest.send('GET', `/api/webhook-subscriptions/${id}`);
  expect(saved.data).toMatchObject({ filterExpression: 'event.data.total > 100.0', labelFilters: { region: 'eu' } });

  // Another one has the label filters with which the expression was tried.
  await page.getByLabel('Endpoint').selectOption(copy);
  await page.getByRole('button', { name: 'Save as new' }).click();
  await eventually(async () =>
    expect((await rest.send('GET', `/api/webhook-subscriptions?endpointId=${copy}`)).body.data).toMatchObject([
      { eventTypeName: 'order.paid', filterExpression: 'event.data.total > 100.0', labelFilters: { region: 'eu' } },
    ]),
  );

  await page.goto(`${standalone.url}/console/o/default/lab?kind=expression&id=${id}&events=100`);
  await text.fill('event.data.total >');
  await page.getByRole('button', { name: 'Run' }).click();
  await results.getByText('0 sent, 0 held back, 4 failed', { exact: true }).waitFor();
  await row('Failed').first().getByText('filterExpression: line 1', { exact: false }).waitFor();

  // A new one, for another endpoint.
  const other = await suite.made('webhook-endpoints', { applicationId, url: 'https://customer.example/other' });
  await page.goto(`${standalone.url}/console/o/default/lab?kind=expression`);
  await page.getByLabel('Events of the type').selectOption('order.sent');
  await text.fill('event.data.total > 100.0');
  await page.getByRole('button', { name: 'Run' }).click();
  await results.getByText('1 sent, 0 held back, 0 failed', { exact: true }).waitFor();
  await page.getByLabel('Endpoint').selectOption(other);
  await page.getByText('Replace ENDPOINT in the manifest', { exact: false }).waitFor();
  await page.getByRole('button', { name: 'Copy as YAML' }).waitFor();
  await page.getByRole('button', { name: 'Save as new' }).click();
  await page.waitForURL('**id=sub_**');
  const { body: made } = await rest.send('GET', `/api/webhook-subscriptions?endpointId=${other}`);
  expect(made.data).toMatchObject([{ eventTypeName: 'order.sent', filterExpression: 'event.data.total > 100.0' }]);

  await page.goto(`${standalone.url}/console/o/default/lab?kind=event-type&id=order.paid`);
  await page.getByLabel('JSON Schema of the payload').fill('{"required":["total"]}');
  await page.getByRole('button', { name: 'Run' }).click();
  await results.getByText('3 valid, 1 invalid, 0 failed', { exact: true }).waitFor();
  await row('Invalid').getByText("must have required property 'total'").waitFor();
  expect(await accessibilityViolations(page)).toEqual([]);
  await page.getByRole('button', { name: 'Save order.paid' }).click();
  await page.getByText('Saved.').waitFor();
  expect((await rest.send('GET', '/api/event-types/order.paid')).body.data.schema).toBe('{"required":["total"]}');
  await page.getByLabel('Name').fill('order.refunded');
  await page.getByRole('button', { name: 'Save as new' }).click();
  await page.waitForURL('**id=etp_**');
  expect((await rest.send('GET', '/api/event-types/order.refunded')).status).toBe(200);

  // null is a payload like another.
  await send('order.refunded', null);
  await page.goto(`${standalone.url}/console/o/default/lab?kind=event-type&id=order.refunded`);
  await page.getByLabel('JSON Schema of the payload').fill('{"type":"null"}');
  await page.getByRole('button', { name: 'Run' }).click();
  await results.getByText('1 valid, 0 invalid, 0 failed', { exact: true }).waitFor();

  // A name that cannot be read is no name that there is not.
  await page.route('**/api/**/manifests/**', (route) =>
    route.fulfill({ status: 503, json: { code: 'UNAVAILABLE', message: 'Redis is away.' } }),
  );
  await page.goto(`${standalone.url}/console/o/default/lab?kind=expression&id=${id}`);
  await page.getByRole('alert').getByText('There is no manifest: Redis is away.').waitFor({ timeout: 60_000 });
  expect(await page.getByRole('button', { name: 'Copy as YAML' }).count()).toBe(0);
  await page.unroute('**/api/**/manifests/**');
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.getByRole('button', { name: 'Copy as YAML' }).waitFor();

  expect(await page.title()).not.toContain('taken');
  suite.expectSound();
}, 180_000);

test('the Lab gives up a save that others keep overtaking, and reports it', async () => {
  const id = await suite.made('transforms', { name: 'Contested', code: '"stored"' });
  const page = await suite.open(`o/default/lab?kind=transform&id=${id}`);
  let refused = 0;
  await page.route(`**/transforms/${id}`, async (route) => {
    if (route.request().method() !== 'PATCH') return await route.fallback();
    refused += 1;
    // Another changes the name before each write.
    await suite.rest.send('PATCH', `/api/transforms/${id}`, { description: `change ${refused}` });
    await route.continue();
  });
  await page.getByLabel('Code').fill('"mine"');
  await page.getByRole('button', { name: 'Save Contested' }).click();
  await page.getByRole('alert').getByText('has changed since it was read', { exact: false }).waitFor();
  expect([refused, (await suite.rest.send('GET', `/api/transforms/${id}`)).body.code]).toEqual([5, '"stored"']);
  await page.unroute(`**/transforms/${id}`);
  await page.getByRole('button', { name: 'Save Contested' }).click();
  await page.getByText('Saved.').waitFor();
  suite.expectSound();
}, 120_000);

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

  // The text is locked while a new object is made of it.
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
