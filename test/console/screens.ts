import { ofGit } from './declared-of-git.ts';

/** The screens that a list of paths reaches, below `/console/o/default`. */
export const listScreens = [
  'overview',
  'live',
  'targets',
  'events',
  'deliveries',
  'messages',
  'dead-letters',
  'replays',
  'topology',
  'sources',
  'routes',
  'lab',
  'lab?kind=transform',
  'cron',
  'cron?view=calendar',
  'channels',
  'applications',
  'event-types',
  `manifests/${ofGit.destination}`,
  `destinations/${ofGit.destination}/edit`,
  `ids?ids=${ofGit.destination},${ofGit.channel}`,
  'access',
  'installation',
] as const;
