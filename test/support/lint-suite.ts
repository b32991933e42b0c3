import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach } from '@jest/globals';
import { readConfig } from '../../src/cmd/config.ts';
import type { LintFinding } from '../../src/cmd/lint/finding.ts';
import { type LintOptions, lint } from '../../src/cmd/lint/lint.ts';

export interface Linted {
  code: number;
  lines: string[];
  /** None with the output `text`. */
  findings: LintFinding[];
}

/** What the tests of a suite about `posthorn lint` share. */
export interface LintSuite {
  /** Empty before each test. */
  readonly directory: string;
  /** Writes files and checks the directory, or the paths of the options. `environment`: settings of the installation. */
  linted(files: Record<string, string | Buffer>, options?: Partial<LintOptions>, environment?: Record<string, string>): Promise<Linted>;
}

/** Registers the hooks of the suite that calls it. */
export function lintSuite(): LintSuite {
  let directory = '';
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'posthorn-lint-'));
  });
  afterEach(() => rmSync(directory, { recursive: true }));
  return {
    get directory() {
      return directory;
    },
    linted: async (files, options = {}, environment = {}) => {
      for (const [file, content] of Object.entries(files)) {
        mkdirSync(join(directory, file, '..'), { recursive: true });
        writeFileSync(join(directory, file), content);
      }
      const lines: string[] = [];
      const all = { paths: [directory], namespace: 'default', output: 'json', isPartial: false, ...options } as const;
      const code = await lint(readConfig('lint', environment), all, (line) => void lines.push(line));
      return { code, lines, findings: all.output === 'json' ? JSON.parse(lines.join('\n')).findings : [] };
    },
  };
}
