import { z } from 'zod';
import { consoleViews } from './console-views.ts';

/** Paths that the program answers itself: a base path that begins with one of them would hide it. */
const ownPaths = ['api', 'console', 'docs', 'ingest', 'livez', 'mail-confirmation', 'metrics', 'openapi.json', 'portal', 'readyz'];

export const consoleEnvironment = {
  POSTHORN_BASE_PATH: z
    .string()
    .max(200)
    .regex(/^(?:\/[A-Za-z0-9_~-][A-Za-z0-9_.~-]*)+$/, 'must be a path such as /posthorn, with no slash at the end')
    .refine((path) => !ownPaths.includes(path.split('/')[1] ?? ''), `must not begin with ${ownPaths.map((each) => `/${each}`).join(', ')}`)
    .default('')
    .describe(
      'Path below which clients reach the installation through a proxy, such as `/posthorn`: everything is served below it as well as without it, so the proxy may strip it or not, and the pages name it. `POSTHORN_PUBLIC_URL` ends with it. Default: none.',
    )
    .meta({ roles: ['api', 'ingest', 'standalone'] }),
  POSTHORN_CONSOLE_THEME: z
    .enum(['auto', 'light', 'dark'])
    .default('auto')
    .describe(
      'Theme of the console for those who have chosen none: `auto`, which is that of the browser, `light` or `dark`. Default: `auto`.',
    )
    .meta({ roles: ['api', 'standalone'] }),
  POSTHORN_CONSOLE_VIEWS: consoleViews
    .default([])
    .describe(
      'Views that everybody finds in the console beside their own: JSON, a list of `{"name": …, "screen": …, "search": {…}}`. `screen` is `events`, `deliveries`, `messages` or `dead-letters`; `search` has filters as the address of that screen names them. At most 50. Default: none.',
    )
    .meta({ roles: ['api', 'standalone'] }),
  POSTHORN_CONSOLE_VIEWS_FILE: z
    .string()
    .min(1)
    .optional()
    .describe('File with these views, where `POSTHORN_CONSOLE_VIEWS` is not given. It is read at the start.')
    .meta({ roles: ['api', 'standalone'] }),
};
