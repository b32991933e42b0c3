import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';

test.each(['--help', '-h'])('hack/run %s says how it is used, and installs and starts nothing', async (flag) => {
  const { stdout, stderr } = await promisify(execFile)('/bin/bash', ['hack/run', '--workers', '2', flag], {
    env: { PATH: '/usr/bin:/bin' },
    timeout: 60_000,
  });
  expect(stdout).toMatch(/^Posthorn on this machine[\s\S]*SAMPLE_RECEIVER_PORT/);
  expect(stderr).toBe('');
});
