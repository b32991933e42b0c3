import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { z } from 'zod';
import { assertProperty } from '../../../../test/support/property.ts';
import { sampleAlert } from '../../../../test/support/sample-alert.ts';
import type { Alert } from '../../../core/alert.ts';
import { alertEmail } from './alert-email.ts';
import { discordMessage } from './discord-message.ts';
import { pagerdutyEvent } from './pagerduty-event.ts';
import { slackComplaint, slackMessage } from './slack-message.ts';
import { teamsComplaint, teamsMessage } from './teams-message.ts';

/** Slack, "Block Kit reference": what each block takes. */
const mrkdwn = (most: number) => z.strictObject({ type: z.literal('mrkdwn'), text: z.string().min(1).max(most), verbatim: z.boolean() });
const slackSchema = z.strictObject({
  text: z.string().min(1).max(40_000),
  blocks: z
    .array(
      z.union([
        z.strictObject({
          type: z.literal('header'),
          text: z.strictObject({ type: z.literal('plain_text'), text: z.string().min(1).max(150) }),
        }),
        z.strictObject({ type: z.literal('section'), text: mrkdwn(3000) }),
        z.strictObject({ type: z.literal('section'), fields: z.array(mrkdwn(2000)).min(1).max(10) }),
        z.strictObject({ type: z.literal('context'), elements: z.array(mrkdwn(3000)).min(1).max(10) }),
      ]),
    )
    .max(50),
});

/** Adaptive Cards 1.4: the elements that are used, in the envelope that Teams takes. */
const textRun = z.strictObject({ type: z.literal('TextRun'), text: z.string(), weight: z.enum(['default', 'lighter', 'bolder']) });
const teamsSchema = z.strictObject({
  type: z.literal('message'),
  attachments: z
    .array(
      z.strictObject({
        contentType: z.literal('application/vnd.microsoft.card.adaptive'),
        contentUrl: z.null(),
        content: z.strictObject({
          $schema: z.literal('http://adaptivecards.io/schemas/adaptive-card.json'),
          type: z.literal('AdaptiveCard'),
          version: z.literal('1.4'),
          fallbackText: z.string(),
          body: z.array(
            z.union([
              z.strictObject({
                type: z.literal('TextBlock'),
                text: z.string(),
                weight: z.enum(['default', 'lighter', 'bolder']),
                size: z.enum(['default', 'small', 'medium', 'large', 'extraLarge']),
                color: z.enum(['default', 'dark', 'light', 'accent', 'good', 'warning', 'attention']),
                wrap: z.boolean(),
              }),
              z.strictObject({
                type: z.literal('RichTextBlock'),
                spacing: z.enum(['default', 'none', 'small', 'medium', 'large', 'extraLarge', 'padding']).optional(),
                inlines: z.array(textRun).min(1),
              }),
            ]),
          ),
        }),
      }),
    )
    .length(1),
});

/** Discord, "Embed limits". */
const discordSchema = z.strictObject({
  allowed_mentions: z.strictObject({ parse: z.array(z.never()) }),
  embeds: z
    .array(
      z.strictObject({
        title: z.string().min(1).max(256),
        description: z.string().max(4096),
        color: z.int().min(0).max(0xff_ff_ff),
        timestamp: z.iso.datetime(),
        fields: z
          .array(z.strictObject({ name: z.string().min(1).max(256), value: z.string().min(1).max(1024), inline: z.boolean() }))
          .max(25),
        footer: z.strictObject({ text: z.string().max(2048) }),
      }),
    )
    .length(1)
    .refine(
      ([embed]) =>
        (embed?.title.length ?? 0) +
          (embed?.description.length ?? 0) +
          (embed?.footer.text.length ?? 0) +
          (embed?.fields ?? []).reduce((sum, { name, value }) => sum + name.length + value.length, 0) <=
        6000,
    ),
});

/** PagerDuty, "Events API v2". */
const incident = { routing_key: z.string().min(1), dedup_key: z.string().min(1).max(255) };
const pagerdutySchema = z.union([
  z.strictObject({ ...incident, event_action: z.literal('resolve') }),
  z.strictObject({
    ...incident,
    event_action: z.literal('trigger'),
    client: z.string(),
    payload: z.strictObject({
      summary: z.string().min(1).max(1024),
      source: z.string().min(1),
      severity: z.enum(['critical', 'error', 'warning', 'info']),
      timestamp: z.iso.datetime(),
      component: z.string(),
      group: z.string(),
      class: z.string(),
      custom_details: z.looseObject({}),
    }),
  }),
]);

const anyText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 200 }),
  fc.constantFrom('<!channel> & <b>', '@everyone', '&'.repeat(200), '😀'.repeat(200), '*'.repeat(200), '"'.repeat(200), '\r\nBcc: a@b'),
);
const anyAlert: fc.Arbitrary<Alert> = fc.record({
  type: fc.constantFrom('delivery.failed', 'delivery.succeeded', 'route.recovered', 'circuit.opened', 'circuit.closed'),
  organizationId: fc.constant('org_a'),
  route: fc.record({ id: fc.constant('rte_a'), name: anyText }),
  destination: fc.record({ id: fc.constant('dst_a'), name: anyText }),
  circuitState: fc.constantFrom('closed', 'open', 'half_open'),
  event: fc.option(fc.constant({ id: 'evt_a', receivedAt: '2026-01-31T12:00:00.000Z' })),
  attempts: fc.option(fc.integer({ min: 0, max: 100 })),
  responseStatus: fc.option(fc.integer({ min: 100, max: 599 })),
  errorMessage: fc.option(fc.string({ unit: 'binary', maxLength: 500 })),
  count: fc.integer({ min: 1, max: 1e9 }),
  firstAt: fc.constant('2026-01-31T12:00:00.000Z'),
  lastAt: fc.constantFrom('2026-01-31T12:00:00.000Z', '2026-01-31T12:04:00.000Z'),
});

describe('every alert', () => {
  test('every alert is a message that Slack takes', () => {
    assertProperty(fc.property(anyAlert, (alert) => void slackSchema.parse(slackMessage(alert))));
  });
  test('every alert is a card that Teams takes, of at most 28 KB', () => {
    assertProperty(
      fc.property(anyAlert, (alert) => {
        const message = teamsMessage(alert);
        teamsSchema.parse(message);
        expect(Buffer.byteLength(JSON.stringify(message))).toBeLessThanOrEqual(28 * 1024);
      }),
    );
  });
  test('every alert is an embed that Discord takes', () => {
    assertProperty(fc.property(anyAlert, (alert) => void discordSchema.parse(discordMessage(alert))));
  });
  test('every alert is an event that PagerDuty takes', () => {
    assertProperty(
      fc.property(anyAlert, fc.boolean(), (alert, isBroken) => {
        pagerdutySchema.parse(pagerdutyEvent(alert, { routingKey: 'r', severity: 'error', isBroken }));
      }),
    );
  });
  test('every alert has a subject of one line', () => {
    assertProperty(fc.property(anyAlert, (alert) => expect(alertEmail(alert).subject).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}]/u)));
  });
});

describe('what users wrote', () => {
  const nasty = sampleAlert({ route: { id: 'rte_a', name: '<!channel> & *bold* [a](https://evil.example)' } });

  test('what users wrote has no meaning to Slack', () => {
    const text = JSON.stringify(slackMessage(nasty));
    expect(text).toContain('&lt;!channel&gt; &amp; *bold*');
    expect(text).not.toContain('<!channel>');
  });
  test('what users wrote is escaped for Discord', () => {
    expect(JSON.stringify(discordMessage(nasty))).toContain(JSON.stringify('\\<!channel\\> & \\*bold\\* \\[a\\]\\(https').slice(1, -1));
  });
  test('what users wrote is in text runs for Teams, which render no Markdown', () => {
    const card = teamsSchema.parse(teamsMessage(nasty)).attachments[0]?.content.body ?? [];
    const blocks = card.filter((element) => element.type === 'TextBlock');
    expect(JSON.stringify(blocks)).not.toContain('channel');
  });
  test('what users wrote stays on its line', () => {
    const { text } = alertEmail(sampleAlert({ route: { id: 'rte_a', name: 'A\r\nRoute: B\u2028C' }, errorMessage: 'a\nAttempts: 0' }));
    expect(text.split('\n').filter((line) => /^(Route|Attempts):/.test(line))).toEqual(['Route: A Route: B C (rte_a)', 'Attempts: 11']);
  });
  test('what users wrote is escaped in HTML', () => {
    const { html } = alertEmail(nasty);
    expect(html).toContain('&lt;!channel&gt; &amp; *bold*');
    expect(html).not.toContain('<!channel>');
  });
});

test('an alert reports route, destination, circuit, event, attempts, answer and times', () => {
  const { text } = alertEmail(sampleAlert());
  expect(text).toBe(
    [
      '3 messages of route "Orders" could not be delivered to "Shop".',
      '',
      'Route: Orders (rte_a)',
      'Destination: Shop (dst_a)',
      'Circuit: half-open',
      'Last event: evt_a, received 2026-01-31T12:00:00.000Z',
      'Attempts: 11',
      'Response status: 503',
      'Error: the receiver answered 503',
      'Time: 2026-01-31T12:00:00.000Z to 2026-01-31T12:04:00.000Z',
      '',
    ].join('\n'),
  );
});

test('PagerDuty gets one incident per route, opened while something is broken, else resolved', () => {
  const event = (isBroken: boolean) => pagerdutyEvent(sampleAlert(), { routingKey: 'key', severity: 'critical', isBroken });
  expect(event(true)).toMatchObject({ event_action: 'trigger', dedup_key: 'rte_a', routing_key: 'key', payload: { severity: 'critical' } });
  expect(event(false)).toEqual({ event_action: 'resolve', dedup_key: 'rte_a', routing_key: 'key' });
});

describe('an answer of 200', () => {
  test.each(['1', ' 1\n', '', '\r\n', '{"status":"posted"}', '[]', '\ufeff1'])(
    'an answer of 200 of Teams with %j takes the message',
    (text) => {
      expect(teamsComplaint(text)).toBeNull();
    },
  );

  test.each([
    'Webhook message delivery failed with error: Microsoft Teams endpoint returned HTTP error 413 with ContextId tcid=0,server=a',
    'Webhook message delivery failed with error: Microsoft Teams endpoint returned HTTP error 429 with ContextId tcid=1,server=b',
    'Bad payload received by generic incoming webhook.',
    '<html>Sign in</html>',
    '0',
    '11',
    'null',
    'false',
  ])('an answer of 200 of Teams with %j is a failure', (text) => {
    expect(teamsComplaint(` ${text}\n`)).toBe(text);
  });

  test.each(['ok', '', '{"ok":true}', 'anything', '{"ok":"false"}', 'null'])(
    'an answer of 200 of Slack with %j takes the message',
    (text) => {
      expect(slackComplaint(text)).toBeNull();
    },
  );

  test.each([
    ['{"ok":false,"error":"invalid_blocks"}', 'invalid_blocks'],
    ['{"ok":false}', '{"ok":false}'],
  ])('an answer of 200 of Slack with %j is a failure', (text, complaint) => expect(slackComplaint(text)).toBe(complaint));
});
