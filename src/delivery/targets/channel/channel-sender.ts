import type { KeyObject } from 'node:crypto';
import { type Alert, pagerdutyUrl } from '../../../core/alert.ts';
import type { Clock } from '../../../core/clock.ts';
import type { EgressRules } from '../../../core/egress-policy.ts';
import type { ChannelRecord } from '../../../core/records.ts';
import type { SealedRecordField } from '../../../core/sealing-contexts.ts';
import { signingKey, withoutPrefix } from '../../../core/signing.ts';
import { maxListedSecrets } from '../../../core/standard-webhooks-secrets.ts';
import type { Dispatchers } from '../http/dispatchers.ts';
import { exchange, type HttpResult } from '../http/http-exchange.ts';
import { httpTarget } from '../http/http-target.ts';
import { destinationHeaders, requestHeaders } from '../http/request-headers.ts';
import { SentSecrets, secretsInHeader, secretsInQuery, secretsInSecretUrl } from '../http/sent-secrets.ts';
import { alertEmail } from './alert-email.ts';
import type { AlertMailer } from './alert-mailer.ts';
import { cut } from './alert-wording.ts';
import { discordMessage } from './discord-message.ts';
import { pagerdutyEvent } from './pagerduty-event.ts';
import { slackComplaint, slackMessage } from './slack-message.ts';
import { teamsComplaint, teamsMessage } from './teams-message.ts';

const timeoutMs = 10_000;
const longestComplaint = 300;

export interface AlertAttempt {
  alert: Alert;
  /** Something of the route is broken. */
  isBroken: boolean;
  /** Sealed; of an incident that is closed. */
  routingKey: string | null;
  messageId: string;
  eventId: string;
  /** From 1. */
  number: number;
  signal: AbortSignal;
}

/** Sends an alert in the form of a channel. Never rejects. */
export type ChannelSender = (attempt: AlertAttempt) => Promise<HttpResult>;

export interface ChannelSenderOptions {
  /** The organization of the channel. */
  account: string;
  dispatchers: Dispatchers;
  egress: EgressRules;
  /** Null: no SMTP server is configured. */
  mailer: AlertMailer | null;
  clock: Clock;
  userAgent: string;
}

export const noMailServer = 'no SMTP server is configured: e-mail needs POSTHORN_SMTP_HOST and POSTHORN_SMTP_FROM';

/** `open` opens a sealed value of the record. Null when one does not open. */
export function channelSender(
  channel: ChannelRecord,
  open: (sealed: string, field: SealedRecordField) => string,
  options: ChannelSenderOptions,
): ChannelSender | null {
  try {
    return senderOf(channel, open, options);
  } catch {
    return null;
  }
}

function senderOf(
  channel: ChannelRecord,
  open: (sealed: string, field: SealedRecordField) => string,
  options: ChannelSenderOptions,
): ChannelSender {
  switch (channel.type) {
    case 'slack':
    case 'teams':
    case 'discord': {
      const { message, complaint } = services[channel.type];
      const url = open(channel.webhookUrl, 'webhookUrl');
      const post = poster({ url, secrets: secretsInSecretUrl(url, httpTarget(url)) }, options);
      return async (attempt) => withComplaint(await post(attempt, message(attempt.alert)), complaint);
    }
    case 'pagerduty': {
      const routingKey = open(channel.routingKey, 'routingKey');
      const post = poster({ url: pagerdutyUrl, secrets: [routingKey] }, options);
      return (attempt) =>
        post(attempt, pagerdutyEvent(attempt.alert, { routingKey, severity: channel.severity, isBroken: attempt.isBroken }));
    }
    case 'webhook': {
      const headers = channel.headers.map(({ name, value }) => ({ name, value: open(value, 'headerValue') }));
      const signingSecrets = channel.signingSecrets.slice(0, maxListedSecrets).map((secret) => open(secret, 'signingSecrets'));
      const secrets = [
        ...signingSecrets.flatMap((secret) => [secret, withoutPrefix(secret)]),
        ...headers.flatMap(({ name, value }) => secretsInHeader(name, value)),
        ...secretsInQuery(httpTarget(channel.url).query),
      ];
      const post = poster({ url: channel.url, headers, keys: signingSecrets.map(signingKey), secrets }, options);
      return (attempt) => post(attempt, attempt.alert);
    }
    case 'email': {
      const { account, mailer, clock } = options;
      if (mailer === null) return async () => ({ type: 'error', error: new Error(noMailServer) });
      return ({ alert, messageId, signal }) =>
        mailer.send({ account, to: channel.addresses, id: messageId, ...alertEmail(alert) }, { timeoutMs, clock, signal });
    }
    default:
      return channel satisfies never;
  }
}

/** Closes incidents, each by the key by which it was opened. */
export function incidentCloser(open: (sealed: string) => string, options: ChannelSenderOptions): ChannelSender {
  return async (attempt) => {
    try {
      const routingKey = open(attempt.routingKey ?? '');
      const post = poster({ url: pagerdutyUrl, secrets: [routingKey] }, options);
      return await post(attempt, pagerdutyEvent(attempt.alert, { routingKey, severity: 'error', isBroken: false }));
    } catch {
      return { type: 'error', error: new Error('the routing key of the incident cannot be opened') };
    }
  };
}

/** The form of an alert for a service, and how a response of 200 reports a refusal. */
const services = {
  slack: { message: slackMessage, complaint: slackComplaint },
  teams: { message: teamsMessage, complaint: teamsComplaint },
  discord: { message: discordMessage, complaint: () => null },
} as const;

function withComplaint(result: HttpResult, complaintOf: (text: string) => string | null): HttpResult {
  if (result.type === 'error' || result.status !== 200) return result;
  const complaint = complaintOf(result.body.toString());
  return complaint === null ? result : { ...result, complaint: cut(complaint.replace(/\s+/g, ' '), longestComplaint) };
}

/** Posts JSON, under the same rules as deliveries: only to addresses that the organization may reach. */
function poster(
  {
    url: target,
    secrets,
    headers = [],
    keys = [],
  }: { url: string; secrets: readonly string[]; headers?: readonly { name: string; value: string }[]; keys?: readonly KeyObject[] },
  { dispatchers, egress, clock, userAgent }: ChannelSenderOptions,
): (attempt: AlertAttempt, message: object) => Promise<HttpResult> {
  const { origin, path } = httpTarget(target);
  // Every value of a header of a channel is a secret.
  const sentSecrets = new SentSecrets(
    secrets,
    headers.map(({ name }) => name.toLowerCase()),
  );
  const dispatcher = dispatchers.forRules({ egress, tls: null, usesProxy: false });
  const own = destinationHeaders(headers, { type: 'none' }, keys);
  return async ({ messageId, eventId, number, signal }, message) => {
    const body = Buffer.from(JSON.stringify(message));
    const sent = requestHeaders(
      own,
      { headers: [], contentType: 'application/json', payload: body },
      { messageId, eventId, number, timestampSeconds: Math.floor(clock.now() / 1000), userAgent, failover: null },
    );
    const request = { origin, path, method: 'POST' as const, headers: sent, body, secrets: sentSecrets };
    return await exchange(dispatcher(), request, { timeoutMs, clock, signal });
  };
}
