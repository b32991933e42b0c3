import type { AttemptDetail } from '../../src/data/shard/attempt-detail.ts';

/** A detail as an attempt is recorded with it, and as the API shows it. */
export const sampleDetail: AttemptDetail = {
  requestHeaders: [['x-posthorn-attempt', '1']],
  responseHeaders: [
    ['set-cookie', '••••'],
    ['x-step', '7'],
    ['x-step', '8'],
  ],
  isTruncated: true,
  peerAddress: '192.0.2.1:443',
  reusedConnection: false,
  requestBytes: 2,
  responseBytes: 3,
  phases: { dnsMs: 1, connectMs: 2, tlsMs: 3, firstByteMs: null, totalMs: 10 },
};
export const shownSampleDetail = {
  requestHeaders: { 'x-posthorn-attempt': '1' },
  responseHeaders: { 'set-cookie': '••••', 'x-step': '7, 8' },
  headersTruncated: true,
  peerAddress: '192.0.2.1:443',
  reusedConnection: false,
  requestBytes: 2,
  responseBytes: 3,
  phases: { dnsMs: 1, connectMs: 2, tlsMs: 3, firstByteMs: null, totalMs: 10 },
};
