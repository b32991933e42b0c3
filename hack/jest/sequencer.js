// The slowest suites start first, so that none of them runs alone at the end. Jest keeps the duration of each suite that it has run in the same directory.
// For a suite without one, slow-suites.js has a duration.
import { existsSync } from 'node:fs';
import { join, relative } from 'node:path';
import Sequencer from '@jest/test-sequencer';
import { slowSuites } from './slow-suites.js';

export default class SlowestFirst extends Sequencer {
  sort(tests) {
    const [rootDir] = tests.map(({ context }) => context.config.rootDir);
    for (const path of rootDir === undefined ? [] : Object.keys(slowSuites))
      if (!existsSync(join(rootDir, path))) throw new Error(`hack/jest/slow-suites.js names ${path}, which does not exist`);
    return super.sort(tests);
  }

  time(test) {
    return super.time(test) ?? 1000 * (slowSuites[relative(test.context.config.rootDir, test.path)] ?? 0);
  }
}
