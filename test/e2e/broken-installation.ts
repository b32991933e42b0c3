import { randomBytes } from 'node:crypto';
import { expect } from '@jest/globals';
import type { Browser } from 'playwright-core';
import { z } from 'zod';
import { openPage, startBrowser, type WatchedPage } from '../support/browser.ts';
import { type CertificateAuthority, createCertificateAuthority } from '../support/certificate-authority.ts';
import { eventually } from '../support/eventually.ts';
import { portForward } from '../support/port-forward.ts';
import { startTlsReceiver, type TlsReceiver, type TlsRequest } from '../support/tls-receiver.ts';
import { addressOfThisMachine } from './cluster-world.ts';
import { type Component, PodOps } from './installation-state.ts';
import { kubectl, kubectlApply } from './kubectl.ts';
import { Shop } from './manifests.ts';
import { nodePod } from './node-pod.ts';
import { RestClient } from './rest.ts';
import { inSystem, patience, patienceMs, secretValue, system } from './system-commands.ts';

/** The installation that the suite of failures breaks, and checks of its state. */

const apiVersion = 'posthorn.dev/v1alpha1';
export const shop = new Shop(`broken-${randomBytes(3).toString('hex')}`);
/** Loses its pool. */
export const poolless = new Shop(`poolless-${randomBytes(3).toString('hex')}`);
const caller = 'caller';

interface Parts {
  pods: PodOps;
  browser: Browser;
  /** By the key of the login. */
  screens: Map<string, WatchedPage>;
  authority: CertificateAuthority;
  receiver: TlsReceiver;
}
let parts: Parts | undefined;
const opened = (): Parts => {
  if (parts === undefined) throw new Error('the installation was not opened');
  return parts;
};

/** The processes of all pods. */
export const pods = (): PodOps => opened().pods;
/** The receiver of all destinations that are in order. It accepts every request. */
const receiver = (): TlsReceiver => opened().receiver;

export const objectOf = (of: Shop, kind: string, name: string, spec: object) => ({
  apiVersion,
  kind,
  metadata: { name, namespace: of.name },
  spec,
});
export const poolOf = (name: string, spec: object) => ({ apiVersion, kind: 'DeliveryPool', metadata: { name, namespace: system }, spec });
/** Sets the pool that serves an organization; null: the pool `default`. */
export const putInPool = ({ name }: Shop, deliveryPool: string | null): Promise<string> =>
  kubectl(['patch', 'organization', name, '--type=merge', '-p', JSON.stringify({ spec: { deliveryPool } })]);
/** Waits until its Deployment is gone, too, which Kubernetes deletes after the pool. */
export async function removePool(name: string): Promise<void> {
  await inSystem('delete', 'deliverypool', name, patience);
  await inSystem('wait', `deployment/posthorn-delivery-${name}`, '--for=delete', patience);
}
export const inShop = (...args: string[]): Promise<string> => kubectl(['-n', shop.name, ...args]);

/** Creates two organizations, a receiver, and a pod that calls the installation. */
export async function openInstallation(): Promise<void> {
  const authority = createCertificateAuthority();
  const address = addressOfThisMachine();
  const tls = authority.issue([address]);
  const [pods, browser, receiver] = await Promise.all([PodOps.open(), startBrowser(), startTlsReceiver({ tls, address })]);
  parts = { pods, browser, screens: new Map(), authority, receiver };
  for (const each of [shop, poolless]) await kubectlApply([each.organization([`${address}/32`])]);
  for (const { name } of [shop, poolless]) await kubectl(['wait', `organization/${name}`, '--for=condition=Ready', patience]);
  const image = await inSystem('get', 'deployment/posthorn-api', '-o', 'jsonpath={.spec.template.spec.containers[0].image}');
  const http = { tls: { caBundle: authority.text }, signingSecretRef: { name: 'signing', key: 'secret' } };
  const orders = (of: Shop) => [
    ...of.secrets,
    of.apiKeyManifest,
    objectOf(of, 'Source', 'orders', { provider: 'generic' }),
    objectOf(of, 'Destination', 'kept', { type: 'http', http: { ...http, url: receiver.url(`/${of.name}`) } }),
    objectOf(of, 'Route', 'orders', { sourceRef: { name: 'orders' }, destinationRefs: [{ name: 'kept' }] }),
  ];
  // Nothing listens at this port.
  const dead = { url: `https://${address}:9/hooks` };
  const circuit = { failureThreshold: 1, cooldownSeconds: 600 };
  await kubectlApply([
    nodePod({ name: caller, namespace: shop.name, image, command: ['node', '--eval', 'setInterval(() => {}, 60_000)'] }),
    ...orders(shop),
    ...orders(poolless),
    ...['open', 'forbidden'].map((name) => objectOf(shop, 'Source', name, { provider: 'generic' })),
    objectOf(shop, 'Destination', 'dead', { type: 'http', http: dead }),
    objectOf(shop, 'Route', 'open', { sourceRef: { name: 'open' }, destinationRefs: [{ name: 'dead' }], circuit }),
  ]);
  for (const [{ name }, route] of [
    [shop, 'orders'],
    [shop, 'open'],
    [poolless, 'orders'],
  ] as const)
    await kubectl(['-n', name, 'wait', `route/${route}`, '--for=condition=Ready', patience]);
  await inShop('wait', `pod/${caller}`, '--for=condition=Ready', patience);
  await installationScreenShows(() => {});
}

export async function closeInstallation(): Promise<void> {
  await inShop('delete', 'pod', caller, '--grace-period=1', '--wait=false', '--ignore-not-found');
  for (const { name } of [shop, poolless]) {
    await kubectl(['delete', 'organization', name, patience, '--ignore-not-found']);
    await kubectl(['delete', 'namespace', name, '--wait=false', '--ignore-not-found']);
  }
  await Promise.all([parts?.pods.close(), parts?.browser.close(), parts?.receiver.stop()]);
  parts?.authority.remove();
}

/** Calls a Service from a pod outside of the installation. Returns the status, or the code of the error. */
async function callService(role: 'api' | 'ingest', path: string): Promise<string> {
  const program = `fetch(${JSON.stringify(`http://posthorn-${role}.${system}.svc${path}`)}, { signal: AbortSignal.timeout(5000) })
    .then(({ status }) => status, (error) => error.cause?.code ?? error.name).then((what) => console.log(what))`;
  return (await inShop('exec', caller, '--', 'node', '--eval', program)).trim();
}
/** The Services have no endpoints. */
export const refusesConnections = (): Promise<void> =>
  eventually(async () => {
    expect(await Promise.all([callService('api', '/api/sources'), callService('ingest', '/ingest/a/b')])).toEqual([
      'ECONNREFUSED',
      'ECONNREFUSED',
    ]);
  }, patienceMs);
export const consoleIsUnreachable = (): Promise<void> =>
  eventually(async () => expect(await callService('api', '/console/')).toBe('ECONNREFUSED'), patienceMs);

/** Forwards a port for this call only, because pods come and go. */
export async function through<T>(role: 'api' | 'ingest', use: (url: string) => Promise<T>): Promise<T> {
  const forward = await portForward(system, `service/posthorn-${role}`, 80);
  try {
    return await use(`http://127.0.0.1:${forward.port}`);
  } finally {
    await forward.stop();
  }
}

export function ask(of: Shop, path: string, body?: object): ReturnType<RestClient['send']> {
  return through('api', (url) => new RestClient(url, of.apiKey).send(body === undefined ? 'GET' : 'POST', path, body));
}

/** Sends an event to a source and returns the response of ingest. */
export function sendEvent(
  of: Shop,
  source: string,
): Promise<{ status: number; retryAfter: string | null; code?: string; eventId?: string }> {
  return through('ingest', async (url) => {
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(`${url}/ingest/${of.name}/${source}`, { method: 'POST', headers, body: '{}' });
    const { code, eventId } = z.looseObject({ code: z.string().optional(), eventId: z.string().optional() }).parse(await response.json());
    return { status: response.status, retryAfter: response.headers.get('retry-after'), ...(code && { code }), ...(eventId && { eventId }) };
  });
}
/** Sends an event that ingest accepts, and returns its id. */
export async function takesEvent(of: Shop, source: string): Promise<string> {
  const { status, eventId = '' } = await sendEvent(of, source);
  expect([status, eventId]).toEqual([200, expect.stringMatching(/^evt_/)]);
  return eventId;
}
/** Sends events until ingest has a new route of the source in force, and returns the id of the one that has a delivery. */
export function takesRoutedEvent(of: Shop, source: string): Promise<string> {
  return eventually(async () => {
    const eventId = await takesEvent(of, source);
    await eventually(
      async () => expect((await ask(of, `/api/deliveries?eventId=${eventId}`)).body.data).toEqual([expect.anything()]),
      patienceMs / 10,
    );
    return eventId;
  }, patienceMs);
}
/** Waits until the only delivery of an event is as expected. */
export const deliveryBecomes = (of: Shop, eventId: string, expected: object): Promise<void> =>
  eventually(async () => expect((await ask(of, `/api/deliveries?eventId=${eventId}`)).body.data).toMatchObject([expected]), patienceMs);
/** Sends an event, waits for its delivery, and returns the request that the receiver got. */
export async function delivers(of: Shop): Promise<TlsRequest> {
  await deliveryBecomes(of, await takesEvent(of, 'orders'), { status: 'delivered' });
  const request = receiver().requests.findLast(({ path }) => path === `/${of.name}`);
  if (request === undefined) throw new Error('the receiver has no request');
  return request;
}

const operatorKey = (): Promise<string> => secretValue('posthorn-api-key', 'api-key');
/** The messages of `warnings` of `GET /api/installation`. */
export async function warnings(): Promise<string> {
  const key = await operatorKey();
  const { body } = await through('api', (url) => new RestClient(url, key).send('GET', '/api/installation'));
  return body.warnings.map(({ message }: { message: string }) => message).join('\n');
}

/** Opens a screen in a page of Chromium that stays logged in, and again when its pod has gone, until its text passes. */
function screenShows(key: string, path: string, check: (text: string) => void): Promise<void> {
  return eventually(() => through('api', (url) => screenShowsAt(url, key, path, check)), patienceMs);
}

async function screenShowsAt(url: string, key: string, path: string, check: (text: string) => void): Promise<void> {
  const screen = opened().screens.get(key) ?? (await openPage(opened().browser));
  opened().screens.set(key, screen);
  const { page } = screen;
  await page.goto(`${url}/console/${path}`);
  await page
    .getByText(/^Sign (in|out)$/)
    .first()
    .waitFor();
  if (page.url().includes('/login')) {
    await page.getByLabel('API key', { exact: true }).last().fill(key);
    await page.keyboard.press('Enter');
    await page.waitForURL((to) => !to.pathname.endsWith('/login'));
  }
  await eventually(async () => check((await page.locator('body').allInnerTexts()).join('')));
}
export const installationScreenShows = async (check: (text: string) => void): Promise<void> =>
  screenShows(await operatorKey(), 'o/default/installation', check);
export const shopScreenShows = (path: string, pattern: RegExp): Promise<void> =>
  screenShows(shop.apiKey, `o/${shop.name}/${path}`, (text) => expect(text).toMatch(pattern));

/** Waits until `/readyz` of every process of the roles matches. */
export const reportsNotReady = async (pattern: RegExp, ...roles: Component[]): Promise<void> => {
  for (const role of roles)
    await eventually(async () => {
      const reports = await pods().readyz(role);
      expect(reports.length).toBeGreaterThan(0);
      for (const each of reports) expect(each).toMatch(pattern);
    }, patienceMs);
};

/** Waits until a condition has this status and reason, as `status reason`. */
export const conditionIs = (namespace: string, what: string, type: string, expected: string): Promise<void> =>
  eventually(async () => {
    const of = (field: string): string => `{.status.conditions[?(@.type=="${type}")].${field}}`;
    expect(await kubectl(['-n', namespace, 'get', what, '-o', `jsonpath=${of('status')} ${of('reason')}`])).toBe(expected);
  }, patienceMs);
export const hasWarning = (reason: string): Promise<void> =>
  eventually(async () => {
    const events = ['get', 'events', '--field-selector', `reason=${reason}`, '-o', 'jsonpath={.items[*].type}'];
    expect(await inShop(...events)).toContain('Warning');
  }, patienceMs);
