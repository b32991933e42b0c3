import { describe } from '@jest/globals';

/** Whether Posthorn runs as pods of a local cluster; `hack/test` starts one and sets it. */
export const hasCluster = process.env['POSTHORN_E2E_CLUSTER'] === '1';

/** `describe` where there is a cluster; else its tests are skipped. */
export const describeInCluster = hasCluster ? describe : describe.skip;
