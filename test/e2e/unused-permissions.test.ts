import { describe, expect, test } from '@jest/globals';
import { AuditLog } from '../support/audit-log.ts';
import { eventually } from '../support/eventually.ts';
import { hasCluster } from '../support/in-cluster.ts';
import { grantedByChart } from './permissions.ts';

const auditLog = process.env['POSTHORN_E2E_AUDIT_LOG'];
const describeWithAuditLog = hasCluster && auditLog !== undefined ? describe : describe.skip;

// It reads what all tests before it have left in the log, those of the installation too: hack/test runs it last.
describeWithAuditLog('the permissions of the chart', () => {
  test('are enough for everything that was done, and none is unused', async () => {
    const granted = await grantedByChart();
    const log = new AuditLog(auditLog ?? '');
    await eventually(() => {
      const { used, forbidden } = log.read();
      expect(forbidden).toEqual([]);
      expect([...granted].filter((each) => !used.has(each))).toEqual([]);
      expect([...used].filter((each) => /^posthorn-(delivery-|ingest\b)/.test(each))).toEqual([]);
    }, 30_000);
  }, 60_000);
});
