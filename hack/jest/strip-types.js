// Jest runs the same text that Node runs: types are blanked out in place, so positions stay as written.
import { createHash } from 'node:crypto';
import { stripTypeScriptTypes } from 'node:module';
import { pathToFileURL } from 'node:url';

/** Of hack/test-program.ts. The sandbox of a suite starts its process from there, too. */
const bundledProgram = process.env['POSTHORN_TEST_PROGRAM'];
const startsSandbox = (path) => bundledProgram !== undefined && path.endsWith('/src/sandbox/sandbox-process.ts');

function code(source, path) {
  if (!path.endsWith('.ts')) return source;
  const stripped = stripTypeScriptTypes(source, { mode: 'strip' });
  if (!startsSandbox(path)) return stripped;
  const place = new URL('sandbox/sandbox-process.js', pathToFileURL(bundledProgram));
  return stripped.replaceAll('import.meta.url', JSON.stringify(place.href));
}

export default {
  process: (source, path) => ({ code: code(source, path) }),
  getCacheKey: (source, path) =>
    createHash('sha256')
      .update(`${path}\0${startsSandbox(path) ? bundledProgram : ''}\0${source}`)
      .digest('hex'),
};
