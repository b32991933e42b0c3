import { processAlertCases } from './process-alert-cases.ts';

/** What Prometheus has scraped, and whether an alert follows from it. */
export interface AlertCase {
  alert: string;
  when: string;
  /** Samples from 0 s on, one each 30 s, as promtool writes them; all of the release's namespace. */
  series: Record<`${string}{${string}}`, string>;
  at: string;
  /** Empty: it is silent. `labels` come on top of those of the rule; `says`: what its templates say, one after the other. */
  fires: readonly { labels?: Record<string, string>; says: readonly string[] }[];
}

export const alertCases: readonly AlertCase[] = [
  {
    alert: 'PosthornNoLeader',
    when: 'all controllers wait',
    series: { 'posthorn_controller_leading{pod="a"}': '0x20' },
    at: '5m',
    fires: [{ says: [] }],
  },
  { alert: 'PosthornNoLeader', when: 'no controller is there', series: {}, at: '5m', fires: [{ says: [] }] },
  {
    alert: 'PosthornNoLeader',
    when: 'two say that they lead',
    series: { 'posthorn_controller_leading{pod="a"}': '1x20', 'posthorn_controller_leading{pod="b"}': '1x20' },
    at: '5m',
    fires: [{ says: [] }],
  },
  {
    alert: 'PosthornNoLeader',
    when: 'one leads and one waits',
    series: { 'posthorn_controller_leading{pod="a"}': '1x20', 'posthorn_controller_leading{pod="b"}': '0x20' },
    at: '5m',
    fires: [],
  },
  {
    alert: 'PosthornNoLeader',
    when: 'another takes over within a minute',
    series: { 'posthorn_controller_leading{pod="a"}': '1x3 stale', 'posthorn_controller_leading{pod="b"}': '0x5 1x10' },
    at: '4m',
    fires: [],
  },
  ...processAlertCases,
  {
    alert: 'PosthornBacklogOld',
    when: 'nobody takes a message',
    series: { 'posthorn_queue_oldest_unread_seconds{pod="a"}': '0+30x40', 'posthorn_queue_oldest_unread_seconds{pod="b"}': '0+30x40' },
    at: '12m',
    fires: [{ says: ['12m 0s'] }],
  },
  {
    alert: 'PosthornBacklogOld',
    when: 'workers catch up after a while',
    series: { 'posthorn_queue_oldest_unread_seconds{pod="a"}': '0+30x15 0x40' },
    at: '12m',
    fires: [],
  },
  {
    alert: 'PosthornPoolWithoutWorkers',
    when: 'messages wait in a pool without pods',
    series: {
      'posthorn_pool_workers{pod="a",pool="eu",state="ready"}': '0x20',
      'posthorn_pool_backlog_messages{pod="a",pool="eu"}': '7x20',
      'posthorn_pool_workers{pod="a",pool="default",state="ready"}': '2x20',
      'posthorn_pool_backlog_messages{pod="a",pool="default"}': '7x20',
    },
    at: '6m',
    fires: [{ labels: { pool: 'eu' }, says: ['eu'] }],
  },
  {
    alert: 'PosthornPoolWithoutWorkers',
    when: 'a pool without work is scaled to nothing, and comes back within minutes',
    series: {
      'posthorn_pool_workers{pod="a",pool="eu",state="ready"}': '0x20 2x20',
      'posthorn_pool_backlog_messages{pod="a",pool="eu"}': '0x12 7x20',
    },
    at: '12m',
    fires: [],
  },
  {
    alert: 'PosthornPoolWithoutWorkers',
    when: 'the pool that organizations wait for is not there',
    series: {
      'posthorn_pool_workers{pod="a",pool="default",state="wanted"}': '0x20',
      'posthorn_pool_workers{pod="a",pool="default",state="ready"}': '0x20',
      'posthorn_pool_backlog_messages{pod="a",pool="default"}': '0x2 1+1x20',
    },
    at: '8m',
    fires: [{ labels: { pool: 'default' }, says: ['default'] }],
  },
  {
    alert: 'PosthornNoPool',
    when: 'no pool is known',
    series: { 'posthorn_controller_leading{pod="a"}': '1x20' },
    at: '6m',
    fires: [{ labels: { namespace: 'posthorn-system' }, says: [] }],
  },
  {
    alert: 'PosthornNoPool',
    when: 'another controller takes over within minutes',
    series: {
      'posthorn_pool_workers{pod="a",pool="default",state="ready"}': '2x4 stale',
      'posthorn_pool_workers{pod="b",pool="default",state="ready"}': '_x8 2x20',
    },
    at: '8m',
    fires: [],
  },
  {
    alert: 'PosthornBootstrapFails',
    when: 'the leader cannot apply two objects',
    series: { 'posthorn_bootstrap_complaints{pod="a"}': '2x20', 'posthorn_bootstrap_complaints{pod="b"}': '0x20' },
    at: '6m',
    fires: [{ says: ['2'] }],
  },
  {
    alert: 'PosthornBootstrapFails',
    when: 'they are applied after some tries',
    series: { 'posthorn_bootstrap_complaints{pod="a"}': '2x4 0x20' },
    at: '6m',
    fires: [],
  },
  {
    alert: 'PosthornPoolUnavailable',
    when: 'pods do not come up',
    series: { 'posthorn_pool_available{pod="a",pool="eu"}': '0x40', 'posthorn_pool_available{pod="a",pool="default"}': '1x40' },
    at: '12m',
    fires: [{ labels: { pool: 'eu' }, says: ['eu'] }],
  },
  {
    alert: 'PosthornPoolUnavailable',
    when: 'a pool that could not start for a while is deleted',
    series: { 'posthorn_pool_available{pod="a",pool="eu"}': '0x10 stale' },
    at: '12m',
    fires: [],
  },
  {
    alert: 'PosthornCircuitsOpen',
    when: 'a receiver fails, and probes of it do, too',
    series: {
      'posthorn_circuits{pod="a",state="open"}': '2x9 1x9 2x70',
      'posthorn_circuits{pod="a",state="half_open"}': '0x9 1x9 0x70',
    },
    at: '35m',
    fires: [{ says: ['2'] }],
  },
  {
    alert: 'PosthornCircuitsOpen',
    when: 'a receiver comes back after 20 minutes',
    series: {
      'posthorn_circuits{pod="a",state="open"}': '1x40 0x60',
      'posthorn_circuits{pod="a",state="half_open"}': '0x100',
    },
    at: '45m',
    fires: [],
  },
  {
    alert: 'PosthornOutboxStuck',
    when: 'nothing reaches a shard',
    series: { 'posthorn_outbox_oldest_seconds{pod="a"}': '0+30x40' },
    at: '12m',
    fires: [{ says: ['12m 0s'] }],
  },
  {
    alert: 'PosthornOutboxStuck',
    when: 'entries wait for a minute at most',
    series: { 'posthorn_outbox_oldest_seconds{pod="a"}': '0 30 60 0 30 60 0x40' },
    at: '12m',
    fires: [],
  },
  {
    alert: 'PosthornDeadLetters',
    when: 'one message ends as a dead letter',
    series: { 'posthorn_delivery_outcomes_total{pod="a",outcome="dead"}': '0x4 1x20' },
    at: '5m',
    fires: [{ says: ['1'] }],
  },
  {
    alert: 'PosthornDeadLetters',
    when: 'attempts fail and are made again',
    series: {
      'posthorn_delivery_outcomes_total{pod="a",outcome="dead"}': '7x40',
      'posthorn_delivery_outcomes_total{pod="a",outcome="retry"}': '0+3x40',
      'posthorn_delivery_outcomes_total{pod="a",outcome="delivered"}': '0+90x40',
    },
    at: '15m',
    fires: [],
  },
  {
    alert: 'PosthornDeadLetters',
    when: 'a worker that had some begins anew',
    series: { 'posthorn_delivery_outcomes_total{pod="a",outcome="dead"}': '7x10 0x20' },
    at: '10m',
    fires: [],
  },
  {
    alert: 'PosthornAlertsGivenUp',
    when: 'one to Slack is',
    series: {
      'posthorn_alert_outcomes_total{pod="a",channel="slack",outcome="dead"}': '0x4 1x20',
      'posthorn_alert_outcomes_total{pod="a",channel="email",outcome="dead"}': '0x30',
    },
    at: '5m',
    fires: [{ labels: { channel: 'slack' }, says: ['slack'] }],
  },
  {
    alert: 'PosthornAlertsGivenUp',
    when: 'they are tried again',
    series: {
      'posthorn_alert_outcomes_total{pod="a",channel="slack",outcome="dead"}': '0x40',
      'posthorn_alert_outcomes_total{pod="a",channel="slack",outcome="retry"}': '0+1x40',
    },
    at: '15m',
    fires: [],
  },
  {
    alert: 'PosthornMailBudgetSpent',
    when: 'e-mails of an organization are refused',
    series: { 'posthorn_mails_total{pod="a",outcome="over_budget"}': '0x4 5x20', 'posthorn_mails_total{pod="a",outcome="sent"}': '0+1x40' },
    at: '5m',
    fires: [{ says: ['5'] }],
  },
  {
    alert: 'PosthornMailBudgetSpent',
    when: 'all are sent, or fail at the mail server',
    series: {
      'posthorn_mails_total{pod="a",outcome="over_budget"}': '0x40',
      'posthorn_mails_total{pod="a",outcome="sent"}': '0+1x40',
      'posthorn_mails_total{pod="a",outcome="failed"}': '0+1x40',
    },
    at: '15m',
    fires: [],
  },
  {
    alert: 'PosthornRedisFillsUp',
    when: 'it stays above 60 %',
    series: { 'posthorn_redis_memory_share{pod="a"}': '0.65x20' },
    at: '6m',
    fires: [{ says: ['65%'] }],
  },
  {
    alert: 'PosthornRedisFillsUp',
    when: 'room is made in time',
    series: { 'posthorn_redis_memory_share{pod="a"}': '0.65x5 0.59x20' },
    at: '6m',
    fires: [],
  },
  {
    alert: 'PosthornIngestFails',
    when: 'Redis is away',
    series: { 'posthorn_ingest_requests_total{pod="a",outcome="UNAVAILABLE"}': '0x4 1+1x20' },
    at: '6m',
    fires: [{ says: [] }],
  },
  {
    alert: 'PosthornIngestFails',
    when: 'requests meet a defect',
    series: { 'posthorn_ingest_requests_total{pod="a",outcome="INTERNAL"}': '0x4 1+1x20' },
    at: '6m',
    fires: [{ says: [] }],
  },
  {
    alert: 'PosthornIngestFails',
    when: 'it is senders who err',
    series: {
      'posthorn_ingest_requests_total{pod="a",outcome="UNAVAILABLE"}': '3x40',
      'posthorn_ingest_requests_total{pod="a",outcome="UNAUTHORIZED"}': '0+3x40',
      'posthorn_ingest_requests_total{pod="a",outcome="accepted"}': '0+90x40',
    },
    at: '15m',
    fires: [],
  },
  {
    alert: 'PosthornIngestAbsent',
    when: 'no process takes events',
    series: {},
    at: '5m',
    fires: [{ labels: { namespace: 'posthorn-system' }, says: [] }],
  },
  {
    alert: 'PosthornIngestAbsent',
    when: 'one takes them, though none has come',
    series: { 'posthorn_ingest_requests_total{pod="a",outcome="accepted"}': '0x20' },
    at: '5m',
    fires: [],
  },
  {
    alert: 'PosthornCacheStale',
    when: 'one process no longer hears of one kind',
    series: {
      'posthorn_reflector_healthy{pod="a",kind="Route"}': '0x20',
      'posthorn_reflector_healthy{pod="a",kind="Source"}': '1x20',
      'posthorn_reflector_healthy{pod="b",kind="Route"}': '1x20',
    },
    at: '6m',
    fires: [{ labels: { pod: 'a', kind: 'Route' }, says: ['a', 'Route'] }],
  },
  {
    alert: 'PosthornCacheStale',
    when: 'the API server was away for two minutes, and the pod is gone',
    series: {
      'posthorn_reflector_healthy{pod="a",kind="Route"}': '0x4 1x20',
      'posthorn_reflector_healthy{pod="b",kind="Route"}': '0x4 stale',
    },
    at: '10m',
    fires: [],
  },
  {
    alert: 'PosthornReconcileFails',
    when: 'objects of a kind go on failing',
    series: {
      'posthorn_reconcile_total{pod="a",kind="Route",result="error"}': '0+1x60',
      'posthorn_reconcile_total{pod="a",kind="Source",result="error"}': '0x60',
    },
    at: '20m',
    fires: [{ labels: { kind: 'Route' }, says: ['Route'] }],
  },
  {
    alert: 'PosthornReconcileFails',
    when: 'a conflict is tried again, and a failure was the only one',
    series: {
      'posthorn_reconcile_total{pod="a",kind="Route",result="error"}': '0 1x60',
      'posthorn_reconcile_total{pod="a",kind="Route",result="conflict"}': '0+1x60',
    },
    at: '20m',
    fires: [],
  },
  {
    alert: 'PosthornCronRunsLate',
    when: 'a run is skipped',
    series: { 'posthorn_cron_runs_total{pod="a",outcome="late"}': '0x4 1x20' },
    at: '5m',
    fires: [{ says: [] }],
  },
  {
    alert: 'PosthornCronRunsLate',
    when: 'runs fail or are dropped',
    series: {
      'posthorn_cron_runs_total{pod="a",outcome="late"}': '0x40',
      'posthorn_cron_runs_total{pod="a",outcome="failed"}': '0+1x40',
      'posthorn_cron_runs_total{pod="a",outcome="dropped"}': '0+1x40',
    },
    at: '15m',
    fires: [],
  },
  {
    alert: 'PosthornRedisEmptied',
    when: 'a worker has found it empty',
    series: { 'posthorn_store_resets_total{pod="a"}': '0x4 1x20' },
    at: '5m',
    fires: [{ says: [] }],
  },
  {
    alert: 'PosthornRedisEmptied',
    when: 'that was more than a quarter of an hour ago',
    series: { 'posthorn_store_resets_total{pod="a"}': '0x4 1x60' },
    at: '20m',
    fires: [],
  },
  {
    alert: 'PosthornProcessBusy',
    when: 'one pod stays behind',
    series: { 'nodejs_eventloop_lag_p99_seconds{pod="a"}': '0.8x40', 'nodejs_eventloop_lag_p99_seconds{pod="b"}': '0.02x40' },
    at: '12m',
    fires: [{ labels: { pod: 'a' }, says: ['a', '800ms'] }],
  },
  {
    alert: 'PosthornProcessBusy',
    when: 'it is behind for a few minutes',
    series: { 'nodejs_eventloop_lag_p99_seconds{pod="a"}': '0.8x10 0.02x40' },
    at: '12m',
    fires: [],
  },
];
