// Appends this run's counts to the file POSTHORN_TEST_COUNTS as one line `passed failed skipped`; hack/test adds them up.
import { appendFileSync } from 'node:fs';

export default class CountReporter {
  onRunComplete(_contexts, results) {
    const file = process.env['POSTHORN_TEST_COUNTS'];
    if (file === undefined) return;
    // A suite that does not even load has no tests that failed, yet the run has.
    const failed = results.numFailedTests + results.numRuntimeErrorTestSuites;
    appendFileSync(file, `${results.numPassedTests} ${failed} ${results.numPendingTests + results.numTodoTests}\n`);
  }
}
