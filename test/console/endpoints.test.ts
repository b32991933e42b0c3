import { beforeAll, describe, expect, test } from '@jest/globals';
import type { Locator, Page } from 'playwright-core';
import { accessibilityViolations, type PageOptions } from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';
import { consoleSuite } from './console-suite.ts';
import { expectNoSideScroll } from './fitting.ts';
import { heldAnswer, loseAnswer } from './lost-answer.ts';

const publicKeyForm = /^whpk_[A-Za-z0-9+/]{43}=$/;
const suite = consoleSuite();
const { made, open, expectSound } = suite;

test('the facts of an endpoint say when it is tried again, when messages expire, what counts as success, and whether messages go out in order', async () => {
  const applicationId = await made('webhook-applications', { name: 'Acme' });
  const own = { retryDelays: [5, 60], expiresAfterSeconds: 3600, successStatusCodes: ['2xx', 409] };
  const headerTemplates = [{ name: 'X-Order', template: 'no {{ payload.order.id }}' }];
  const endpoint = await made('webhook-endpoints', { applicationId, url: 'https://customer.example/', headerTemplates, ...own });
  const page = await open(`o/default/targets/${endpoint}`);
  const facts = page.getByRole('region', { name: 'Facts' });
  const fact = (name: string) => facts.locator(`dt:text-is("${name}") + dd`);
  await facts.waitFor();
  expect(await fact('Retries').textContent()).toBe('2, after 5 s, 1 min');
  expect(await fact('Success').textContent()).toBe('2xx, 409');
  expect(await fact('Expiry').textContent()).toBe('messages expire after 1 h');
  expect(await fact('Order').count()).toBe(0);
  expect(await fact('Templated headers').textContent()).toBe('X-Order: no {{ payload.order.id }}');
  expect(await fact('Body').count()).toBe(0);
  await suite.rest.send('PATCH', `/api/webhook-endpoints/${endpoint}`, {
    retryDelays: null,
    expiresAfterSeconds: null,
    successStatusCodes: null,
    ordered: true,
    headerTemplates: [],
    payloadForm: 'thin',
  });
  await page.reload();
  await facts.waitFor();
  expect(await fact('Templated headers').count()).toBe(0);
  expect(await fact('Retries').textContent()).toBe('as the installation has them');
  expect(await fact('Success').textContent()).toBe('any 2xx');
  expect(await fact('Expiry').textContent()).toBe('messages do not expire');
  expect(await fact('Body').textContent()).toMatch(/^thin: .+ a link to the payload/);
  expect(await fact('Order').textContent()).toMatch(/^in the order of acceptance, one at a time/);
  expectSound();
});

test('the facts of a source and of a destination that were imported without their signing secret say why they cannot be enabled', async () => {
  const sources = [{ name: 'Moved source', slug: 'moved-source', provider: 'github', hasSigningSecret: true, isActive: true }];
  const destinations = [{ name: 'Moved', slug: 'moved', url: 'https://shop.example/', hasSigningSecret: true, isActive: true }];
  const conflictStrategy = 'skip';
  for (const [path, records] of Object.entries({ sources, destinations })) {
    const { body } = await suite.rest.send('POST', `/api/${path}/import`, { [path]: records, conflictStrategy });
    expect([path, body.summary.imported]).toEqual([path, 1]);
  }
  const { id } = (await suite.rest.send('GET', '/api/destinations/moved')).body;
  const page = await open(`o/default/targets/${id}`);
  await page.getByText('none: the import left out the signing secret. The destination cannot be enabled').waitFor();
  const source = (await suite.rest.send('GET', '/api/sources/moved-source')).body;
  await page.goto(`${suite.standalone.url}/console/o/default/sources?at=${source.id}`);
  await page.getByText('None: the import left it out. The source cannot be enabled').waitFor();
  expectSound();
});

test('the form of an endpoint chooses its signatures, its secret is rotated with an overlap, and its facts have the public keys, earlier ones while they sign', async () => {
  const applicationId = await made('webhook-applications', { name: 'Signed' });
  const page = await open(`o/default/endpoints/new?applicationId=${applicationId}`);
  await page.getByLabel('URL *').fill('https://customer.example/signed');
  await page.getByText('Further settings').click();
  await page.getByLabel('Signature scheme').selectOption('both');
  await page.getByRole('button', { name: 'Create endpoint' }).click();
  const shown = page.getByRole('dialog', { name: 'Store the signing secret' });
  await shown.getByRole('button', { name: 'Copy public key' }).waitFor();
  const [secret, publicKey] = await shown.locator('code').allTextContents();
  expect([secret, publicKey]).toEqual([expect.stringMatching(/^whsec_/), expect.stringMatching(publicKeyForm)]);
  await shown.getByRole('button', { name: 'I have stored it' }).click();
  await page.waitForURL('**/targets?at=ep_*');
  const id = new URL(page.url()).searchParams.get('at') ?? '';
  await page.goto(page.url().replace(/targets\?.*/, `targets/${id}`));
  await page.getByRole('button', { name: 'Rotate secret…' }).click();
  const question = page.getByRole('dialog', { name: 'Rotate the signing secret?' });
  await question.getByText('The scheme stays v1 (HMAC-SHA256) and v1a (Ed25519).').waitFor();
  expect(await accessibilityViolations(page)).toEqual([]);
  await question.getByLabel('The old ones sign, too, for').selectOption('6 hours');
  const begunAt = Date.now();
  await question.getByRole('button', { name: 'Rotate secret' }).click();
  await shown.getByText('The old secret and the old key sign until').waitFor();
  const [rotated, rotatedKey] = await shown.locator('code').allTextContents();
  expect([rotated, rotatedKey]).toEqual([expect.stringMatching(/^whsec_/), expect.stringMatching(publicKeyForm)]);
  expect([rotated, rotatedKey]).not.toEqual([secret, publicKey]);
  const { data: endpoint } = (await suite.rest.send('GET', `/api/webhook-endpoints/${id}`)).body;
  expect(endpoint).toMatchObject({ secretVersion: 2, publicKey: rotatedKey, previousPublicKeys: [{ publicKey }] });
  expect(Math.abs(Date.parse(endpoint.previousPublicKeys[0].expiresAt) - begunAt - 21_600_000)).toBeLessThan(60_000);
  await page.keyboard.press('Escape');
  await shown.getByRole('button', { name: 'I have stored it' }).click();
  await shown.waitFor({ state: 'detached' });
  expect(await page.content()).not.toContain('whsec_');
  const facts = page.getByRole('region', { name: 'Facts' });
  const fact = (name: string) => facts.locator(`dt:text-is("${name}") + dd`);
  await facts.waitFor();
  expect(await fact('Signatures').textContent()).toBe('v1 (HMAC-SHA256) and v1a (Ed25519)');
  expect(await fact('Public key').locator('code').textContent()).toMatch(publicKeyForm);
  expect(await fact('Public key').locator('code').textContent()).not.toBe(publicKey);
  expect(await fact('Earlier public keys').textContent()).toContain(`${publicKey} signs until`);
  expect(await page.content()).not.toContain('whsk_');
  expect(await accessibilityViolations(page)).toEqual([]);
  await page.setViewportSize({ width: 320, height: 800 });
  await expectNoSideScroll(page, 320);
  expectSound();
});

describe('the secret of an endpoint is rotated,', () => {
  let applicationId: string;
  beforeAll(async () => {
    applicationId = await made('webhook-applications', { name: 'Rotating' });
  });
  /** Comes from the list, so that the page can be left without a new document. */
  const openRotation = async (
    name: string,
    options: PageOptions = {},
  ): Promise<{ page: Page; id: string; question: Locator; rotate: Locator }> => {
    const id = await made('webhook-endpoints', { applicationId, url: `https://${name}.example/` });
    const page = await open('o/default/targets', options);
    await page
      .getByRole('link', { name: `${name}.example/` })
      .first()
      .click();
    await page.getByRole('button', { name: 'Rotate secret…' }).click();
    const question = page.getByRole('dialog', { name: 'Rotate the signing secret?' });
    return { page, id, question, rotate: question.getByRole('button', { name: 'Rotate secret' }) };
  };
  const versionOf = async (id: string): Promise<number> =>
    (await suite.rest.send('GET', `/api/webhook-endpoints/${id}`)).body.data.secretVersion;

  test('and until the answer comes nothing closes the dialog, and the page asks before it is left', async () => {
    const { page, id, question, rotate } = await openRotation('patient');
    const release = await heldAnswer(page, '/rotate-secret');
    await rotate.click();
    await eventually(async () => expect(await versionOf(id)).toBe(2));
    expect(await question.getByRole('button', { name: 'Keep it' }).isDisabled()).toBe(true);
    await page.keyboard.press('Escape');
    await page.mouse.click(5, 5);
    await page.goBack();
    const leaves = page.getByRole('dialog', { name: 'Leave without the secret?' });
    await leaves.getByRole('button', { name: 'Stay' }).click();
    await leaves.waitFor({ state: 'detached' });
    expect(await question.isVisible()).toBe(true);
    release();
    const shown = page.getByRole('dialog', { name: 'Store the signing secret' });
    expect(await shown.locator('code').textContent()).toMatch(/^whsec_/);
    await page.goBack();
    await leaves.getByRole('button', { name: 'Stay' }).click();
    await shown.getByRole('button', { name: 'I have stored it' }).click();
    await shown.waitFor({ state: 'detached' });
    await page.goBack();
    await page.waitForURL('**/targets');
    expect(await leaves.count()).toBe(0);
    expectSound();
  });

  test('and after a lost answer the dialog says that the result is unknown; a second press gives the secret', async () => {
    const { page, id, question, rotate } = await openRotation('forgetful');
    await loseAnswer(page, '/rotate-secret');
    await rotate.click();
    const alert = question.getByRole('alert');
    await alert.getByText('It is unknown whether this was done.', { exact: false }).waitFor();
    expect(await alert.textContent()).toContain('sends the same request: it is carried out once, and gives the same answer.');
    expect(await alert.textContent()).not.toContain('Nothing was changed.');
    expect(await accessibilityViolations(page)).toEqual([]);
    await rotate.click();
    await page
      .getByRole('dialog', { name: 'Store the signing secret' })
      .locator('code')
      .getByText(/^whsec_/)
      .waitFor();
    expect(await versionOf(id)).toBe(2);
  });

  test('and it is another request two minutes after a lost answer, and once the dialog was closed', async () => {
    const { page, question, rotate } = await openRotation('late', { movesClock: true });
    const keys: (string | undefined)[] = [];
    await page.route('**/rotate-secret', async (route) => {
      keys.push(route.request().headers()['idempotency-key']);
      await route.abort();
    });
    const press = async (): Promise<void> => {
      const { length } = keys;
      await rotate.click();
      await eventually(() => expect(keys).toHaveLength(length + 1));
      // The alert may be that of the press before.
      await eventually(async () => expect(await rotate.isEnabled()).toBe(true));
      await question.getByRole('alert').waitFor();
    };
    await press();
    await press();
    await page.clock.fastForward(121_000);
    await press();
    await question.getByRole('button', { name: 'Keep it' }).click();
    await question.waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Rotate secret…' }).click();
    await press();
    const [first, second, later, reopened] = keys;
    expect(first).toMatch(/^[0-9a-f]{32}$/);
    expect(second).toBe(first);
    expect(new Set([first, later, reopened]).size).toBe(3);
  });
});

test('an endpoint whose last attempt failed says why on its page and on the overview', async () => {
  const applicationId = await made('webhook-applications', { name: 'Refusing' });
  const eventTypeId = await made('event-types', { name: 'order.refused' });
  // Nothing listens there.
  const endpointId = await made('webhook-endpoints', { applicationId, url: 'https://127.0.0.1:9/in', retryDelays: [3600] });
  await made('webhook-subscriptions', { endpointId, eventTypeId });
  await suite.rest.send('POST', '/api/send-event', { eventType: 'order.refused', endpointId, payload: { n: 1 } });
  const page = await open(`o/default/targets/${endpointId}`);
  const last = page.getByRole('region', { name: 'Facts' }).locator('dt:text-is("Last failure") + dd');
  await eventually('the failure', 60_000, async () => /ECONNREFUSED|refused|connect/i.test((await last.textContent()) ?? ''));
  await page.goto(`${suite.standalone.url}/console/o/default/overview`);
  await page
    .getByRole('region', { name: 'What is wrong' })
    .getByRole('row')
    .filter({ hasText: '127.0.0.1:9/in' })
    .getByText(/ECONNREFUSED|refused|connect/i)
    .waitFor();
  expectSound();
});

test('the facts of a destination have the public key of what signs; without a secret nothing does', async () => {
  const signingSecret = 'whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg==';
  const url = 'https://shop.example/in';
  const signed = await made('destinations', { name: 'Signed', url, signatureScheme: 'ed25519', signingSecret });
  const plain = await made('destinations', { name: 'Plain', url });
  for (const [id, signatures, publicKeys] of [
    [signed, 'v1a (Ed25519)', ['whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=']],
    [plain, 'none', []],
  ] as const) {
    const page = await open(`o/default/targets/${id}`);
    const facts = page.getByRole('region', { name: 'Facts' });
    await facts.waitFor();
    expect(await facts.locator('dt:text-is("Signatures") + dd').textContent()).toBe(signatures);
    expect(await facts.locator('dt:text-is("Public key") + dd code').allTextContents()).toEqual(publicKeys);
  }
  expectSound();
});

test('the forms of a destination and of an endpoint set templated headers, and say at the field what is wrong with one', async () => {
  const target = await made('destinations', { name: 'Templated', url: 'https://shop.example/in' });
  const applicationId = await made('webhook-applications', { name: 'Templated' });
  const endpoint = await made('webhook-endpoints', { applicationId, url: 'https://customer.example/' });
  const page = await open(`o/default/destinations/${target}/edit`);
  const save = page.getByRole('button', { name: 'Save', exact: true });
  await page.getByText('Further settings').click();
  const templates = page.getByRole('group', { name: 'Header templates' });
  await templates.getByRole('button', { name: 'Add' }).click();
  await templates.getByLabel('Name 1').fill('X-Order');
  await templates.getByLabel('Value 1').fill('{{ payload.order.id');
  await save.click();
  await page.locator('.error', { hasText: 'has a placeholder that is not closed' }).waitFor();
  await templates.getByLabel('Value 1').fill('{{ payload.order.id }}');
  await save.click();
  await page.waitForURL('**/targets?at=*');
  await page.getByText('X-Order: {{ payload.order.id }}').waitFor();

  await page.goto(page.url().replace(/targets\?.*/, `endpoints/${endpoint}/edit`));
  await page.getByText('Further settings').click();
  await page.getByRole('button', { name: 'Add to header templates' }).click();
  await page.getByLabel('Name *').fill('X-Type');
  await page.getByLabel('Template *').fill('{{ source }}');
  await save.click();
  await page.locator('.error', { hasText: 'has the unknown path "source"' }).waitFor();
  await page.getByLabel('Template *').fill('{{ event.type }}');
  await save.click();
  await page.waitForURL('**/targets?at=*');
  await page.getByText('X-Type: {{ event.type }}').waitFor();
  expect(await accessibilityViolations(page)).toEqual([]);
  await page.setViewportSize({ width: 320, height: 800 });
  await expectNoSideScroll(page, 320);
  expectSound();
});
