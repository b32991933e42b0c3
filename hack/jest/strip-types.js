// Jest runs the same text that Node runs: types are blanked out in place, so positions stay as written.
import { stripTypeScriptTypes } from 'node:module';

export default {
  process: (source, path) => ({ code: path.endsWith('.ts') ? stripTypeScriptTypes(source, { mode: 'strip' }) : source }),
};
