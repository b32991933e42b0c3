import { expect, test } from '@jest/globals';
import { type WebhookService, webhookUrlProblem } from './webhook-url.ts';

test.each<[WebhookService, string]>([
  ['slack', 'https://hooks.slack.com/services/T0/B0/x'],
  ['slack', 'HTTPS://Hooks.Slack.com/services/T0/B0/x'],
  ['discord', 'https://discord.com/api/webhooks/1/x'],
  ['discord', 'Https://DISCORD.com/api/webhooks/1/x'],
  ['teams', 'HTTPS://acme.webhook.office.com/hook?sig=a'],
])('a URL of %s may be %s', (service, url) => expect(webhookUrlProblem(service, url)).toBeNull());

test.each<[WebhookService, string, RegExp]>([
  ['slack', 'HTTP://hooks.slack.com/services', /^must start with https:\/\/hooks/],
  ['slack', 'https://hooks.slack.com.evil.example/services', /^must start with/],
  ['slack', 'https://hooks.slack.com@evil.example/services', /^must start with/],
  ['slack', 'https://hooks.slack.com\\@evil.example/services', /^must start with/],
  ['slack', 'https://evil.example/https://hooks.slack.com/', /^must start with/],
  ['discord', 'https://discord.com/API/webhooks/1', /^must start with/],
  ['discord', 'https://discord.com/api/webhooks', /^must start with/],
  ['teams', 'http://acme.webhook.office.com/hook', /^must start with https:/],
  ['teams', 'https://user@acme.webhook.office.com/hook', /absolute https URL/],
])('a URL of %s may not be %s', (service, url, problem) => expect(webhookUrlProblem(service, url)).toMatch(problem));
