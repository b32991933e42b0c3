import { describe, expect, test } from '@jest/globals';
import { readAuditLog } from '../support/audit-log.ts';
import { passes } from '../support/passes.ts';
import { grantedByChart } from './permissions.ts';

const auditLog = process.env['POSTHORN_E2E_AUDIT_LOG'];
const describeWithAuditLog = process.env['POSTHORN_E2E_CLUSTER'] === '1' && auditLog !== undefined ? describe : describe.skip;

/** Granted, and not used by what the tests of this folder do in a cluster; each with what would use it. */
const onlySometimes = new Map([
  ['posthorn-controller patch organizations/status.posthorn.dev', 'an archive that cannot be written to'],
  ['posthorn-controller patch webhookendpoints/status.posthorn.dev', 'the circuit of an endpoint that is declared'],
  ['posthorn-controller get webhookendpoints.posthorn.dev', 'the same'],
  ['posthorn-api get webhookapplications.posthorn.dev', 'a path with the name of one that is declared'],
  ['posthorn-api get webhookendpoints.posthorn.dev', 'the same'],
  ['posthorn-api get webhooksubscriptions.posthorn.dev', 'the same'],
  ['posthorn-controller watch scaledobjects.keda.sh', 'KEDA in the cluster'],
  ['posthorn-controller create scaledobjects.keda.sh', 'KEDA in the cluster'],
  ['posthorn-controller patch scaledobjects.keda.sh', 'KEDA in the cluster'],
  ['posthorn-controller delete scaledobjects.keda.sh', 'KEDA in the cluster'],
  ['posthorn-uninstall patch deliverypools.posthorn.dev', 'pools that the controllers have not ended in time'],
]);

// It reads what all tests before it have left in the log, those of the installation too: hack/test runs it last.
describeWithAuditLog('the permissions of the chart', () => {
  test('are enough for everything that was done, and none is unused', async () => {
    const granted = await grantedByChart();
    expect([...onlySometimes.keys()].filter((each) => !granted.has(each))).toEqual([]);
    await passes(() => {
      const { used, forbidden } = readAuditLog(auditLog ?? '');
      expect(forbidden).toEqual([]);
      expect([...granted].filter((each) => !used.has(each) && !onlySometimes.has(each))).toEqual([]);
      expect([...used].filter((each) => each.startsWith('posthorn-delivery-'))).toEqual([]);
    }, 20_000);
  }, 60_000);
});
