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
  'sources',
  'routes',
  'cron',
  'channels',
  'applications',
  'event-types',
  'access',
] as const;
