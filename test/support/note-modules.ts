import { appendFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { basename, join } from 'node:path';

/**
 * To be loaded with `--import` before a program: writes the URL of each module that it loads, a line each, into a file that is named
 * for its role, in the directory `POSTHORN_TEST_MODULES`.
 */
const directory = process.env['POSTHORN_TEST_MODULES'] ?? '';
const [, program = '', role = ''] = process.argv;
const file = join(directory, `${basename(program)} ${role}`);

registerHooks({
  load: (url, context, nextLoad) => {
    appendFileSync(file, `${url}\n`);
    return nextLoad(url, context);
  },
});
