import { alertRetryPolicy, channelOfClosingTarget, routeOfMailTarget } from '../../core/alert.ts';
import type { ChannelRecord, RetryPolicyRecord } from '../../core/records.ts';
import type { Keyring } from '../../core/sealing.ts';
import { recordSealingContext } from '../../core/sealing-contexts.ts';
import type { TargetSetting } from '../../data/queue/delivery-queue.ts';
import type { RegistryReader } from '../../data/registry/registry.ts';
import { type ChannelSender, type ChannelSenderOptions, channelSender, incidentCloser } from '../targets/channel/channel-sender.ts';

/** How the alerts of a channel, or of the addresses of a route, are sent. */
export interface AlertPlan {
  setting: TargetSetting;
  retryPolicy: RetryPolicyRecord;
  channelType: ChannelRecord['type'];
  /** Null: a secret of the channel does not open. */
  send: ChannelSender | null;
}

/** Attempts at one time at one channel; and alerts that may wait for it, further ones are dropped. */
const maxAtOnce = 2;
const longestQueue = 1000;

/** Null when the channel is gone or disabled, or the route has no addresses any more: what waits is of no use then. */
export async function alertPlan(
  { registry, keyring }: { registry: RegistryReader; keyring: Keyring },
  org: string,
  destinationId: string,
  options: ChannelSenderOptions,
): Promise<AlertPlan | null> {
  const closedAt = channelOfClosingTarget(destinationId);
  if (closedAt !== null) {
    const open = (sealed: string): string => keyring.open(sealed, recordSealingContext(org, 'notificationChannel', closedAt, 'routingKey'));
    return { setting: settingOf(0), retryPolicy: alertRetryPolicy, channelType: 'pagerduty', send: incidentCloser(open, options) };
  }
  const found = await channelOf(registry, org, destinationId);
  if (found === null) return null;
  const { channel, generation } = found;
  return {
    setting: settingOf(generation),
    retryPolicy: alertRetryPolicy,
    channelType: channel.type,
    send: channelSender(
      channel,
      (sealed, field) => keyring.open(sealed, recordSealingContext(org, 'notificationChannel', destinationId, field)),
      options,
    ),
  };
}

async function channelOf(
  registry: RegistryReader,
  org: string,
  destinationId: string,
): Promise<{ channel: ChannelRecord; generation: number } | null> {
  const routeId = routeOfMailTarget(destinationId);
  if (routeId === null) {
    const record = await registry.getOf(org, 'notificationChannel', destinationId);
    return record === null || !record.enabled ? null : record;
  }
  const route = await registry.getOf(org, 'route', routeId);
  const addresses = route?.notifications?.emails ?? [];
  if (route === null || addresses.length === 0) return null;
  return { channel: { type: 'email', addresses }, generation: route.generation };
}

/** No circuit: retries are few, and a circuit that opens would be worth an alert. */
function settingOf(generation: number): TargetSetting {
  return {
    revision: `a${generation}`,
    paused: false,
    pausedFor: null,
    movesOn: 'nobody',
    throttle: { mode: 'concurrency', rateLimit: null, rateUnit: null, maxConcurrency: maxAtOnce, queueLimit: longestQueue },
    sharedLimiter: null,
    priority: 0,
    circuit: { failureThreshold: 1_000_000_000, cooldownSeconds: 1, probeSuccessThreshold: 1 },
    failover: { destinations: [], afterAttempts: null },
    batch: null,
    inOrder: false,
    hasAlerts: false,
    hasOwnEvents: false,
  };
}
