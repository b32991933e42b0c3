import type { AlertCase } from './alert-case.ts';

/** Cases of alerts on metrics of processes and of objects. */
export const processAlertCases: readonly AlertCase[] = [
  {
    alert: 'PosthornNotReady',
    when: 'Redis is unreachable for one pod',
    series: {
      'posthorn_readiness{pod="a",check="redis"}': '0x20',
      'posthorn_readiness{pod="a",check="resources"}': '1x20',
      'posthorn_readiness{pod="b",check="redis"}': '1x20',
    },
    at: '6m',
    fires: [{ labels: { pod: 'a', check: 'redis' }, says: ['a', 'redis'] }],
  },
  {
    alert: 'PosthornNotReady',
    when: 'a pod starts within minutes',
    series: { 'posthorn_readiness{pod="a",check="redis"}': '0x6 1x20' },
    at: '8m',
    fires: [],
  },
  {
    alert: 'PosthornObjectsNotReady',
    when: 'two routes are not Ready',
    series: {
      'posthorn_objects{pod="a",kind="Route",state="not_ready"}': '2x60',
      'posthorn_objects{pod="a",kind="Route",state="ready"}': '7x60',
      'posthorn_objects{pod="a",kind="Source",state="not_ready"}': '0x60',
    },
    at: '20m',
    fires: [{ labels: { kind: 'Route' }, says: ['2', 'Route'] }],
  },
  {
    alert: 'PosthornObjectsNotReady',
    when: 'objects are disabled',
    series: {
      'posthorn_objects{pod="a",kind="Route",state="not_ready"}': '0x60',
      'posthorn_objects{pod="a",kind="Route",state="disabled"}': '3x60',
    },
    at: '20m',
    fires: [],
  },
  {
    alert: 'PosthornVersionSkew',
    when: 'a rollout does not end',
    series: {
      'posthorn_build_info{pod="a",version="0.1.0"}': '1x200',
      'posthorn_build_info{pod="b",version="0.1.0"}': '1x200',
      'posthorn_build_info{pod="c",version="0.2.0"}': '1x200',
    },
    at: '65m',
    fires: [{ says: ['2'] }],
  },
  {
    alert: 'PosthornVersionSkew',
    when: 'a rollout ends within minutes',
    series: { 'posthorn_build_info{pod="a",version="0.1.0"}': '1x20 stale', 'posthorn_build_info{pod="b",version="0.2.0"}': '1x200' },
    at: '65m',
    fires: [],
  },
  {
    alert: 'PosthornClockSkew',
    when: 'a clock is late',
    series: { 'posthorn_clock_skew_seconds{pod="a"}': '-30x20', 'posthorn_clock_skew_seconds{pod="b"}': '0.1x20' },
    at: '6m',
    fires: [{ labels: { pod: 'a' }, says: ['a', '30s'] }],
  },
  {
    alert: 'PosthornClockSkew',
    when: 'clocks differ by less than a second',
    series: { 'posthorn_clock_skew_seconds{pod="a"}': '0.9x20' },
    at: '6m',
    fires: [],
  },
  {
    alert: 'PosthornApiServerClockSkew',
    when: 'the clock of the API server is half a minute ahead',
    series: { 'posthorn_api_server_clock_skew_seconds{pod="a"}': '-30x20', 'posthorn_api_server_clock_skew_seconds{pod="b"}': '0.4x20' },
    at: '6m',
    fires: [{ labels: { pod: 'a' }, says: ['a', '30s'] }],
  },
  {
    alert: 'PosthornApiServerClockSkew',
    when: 'a clock is set within minutes',
    series: { 'posthorn_api_server_clock_skew_seconds{pod="a"}': '-30x6 0x20' },
    at: '8m',
    fires: [],
  },
  {
    alert: 'PosthornPoolNotAccepted',
    when: 'a pool names a Secret that does not exist',
    series: { 'posthorn_pool_accepted{pod="a",pool="eu"}': '0x60', 'posthorn_pool_accepted{pod="a",pool="default"}': '1x60' },
    at: '12m',
    fires: [{ labels: { pool: 'eu' }, says: ['eu'] }],
  },
  {
    alert: 'PosthornPoolNotAccepted',
    when: 'the Secret comes within minutes',
    series: { 'posthorn_pool_accepted{pod="a",pool="eu"}': '0x10 1x60' },
    at: '12m',
    fires: [],
  },
  {
    alert: 'PosthornPoolNotScaling',
    when: 'an autoscaler gets no metric',
    series: { 'posthorn_pool_autoscaling_available{pod="a",pool="eu"}': '0x60' },
    at: '20m',
    fires: [{ labels: { pool: 'eu' }, says: ['eu'] }],
  },
  {
    alert: 'PosthornPoolNotScaling',
    when: 'an autoscaler gets its first metric within minutes',
    series: { 'posthorn_pool_autoscaling_available{pod="a",pool="eu"}': '0x10 1x60' },
    at: '20m',
    fires: [],
  },
];
