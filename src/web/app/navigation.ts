/** The screens of the sidebar. `key`: what follows `g` on the keyboard. */
export interface Place {
  to:
    | '/o/$org/overview'
    | '/o/$org/live'
    | '/o/$org/targets'
    | '/o/$org/events'
    | '/o/$org/deliveries'
    | '/o/$org/messages'
    | '/o/$org/dead-letters'
    | '/o/$org/replays'
    | '/o/$org/topology'
    | '/o/$org/sources'
    | '/o/$org/routes'
    | '/o/$org/lab'
    | '/o/$org/cron'
    | '/o/$org/channels'
    | '/o/$org/applications'
    | '/o/$org/event-types'
    | '/o/$org/access'
    | '/o/$org/installation';
  word: string;
  icon: string;
  key?: string;
}

export const groups: readonly { title: string | null; places: readonly Place[] }[] = [
  {
    title: null,
    places: [
      { to: '/o/$org/overview', word: 'Overview', icon: 'overview', key: 'o' },
      { to: '/o/$org/live', word: 'Live', icon: 'live', key: 'l' },
      { to: '/o/$org/targets', word: 'Targets', icon: 'target', key: 't' },
    ],
  },
  {
    title: 'Traffic',
    places: [
      { to: '/o/$org/events', word: 'Events', icon: 'event', key: 'e' },
      { to: '/o/$org/deliveries', word: 'Deliveries', icon: 'delivery', key: 'v' },
      { to: '/o/$org/messages', word: 'Messages', icon: 'message', key: 'm' },
      { to: '/o/$org/dead-letters', word: 'Dead letters', icon: 'letter', key: 'd' },
      { to: '/o/$org/replays', word: 'Replays', icon: 'replay', key: 'p' },
    ],
  },
  {
    title: 'Wiring',
    places: [
      { to: '/o/$org/topology', word: 'Topology', icon: 'topology', key: 'y' },
      { to: '/o/$org/sources', word: 'Sources', icon: 'source', key: 's' },
      { to: '/o/$org/routes', word: 'Routes', icon: 'route', key: 'r' },
      { to: '/o/$org/lab', word: 'Lab', icon: 'lab', key: 'b' },
      { to: '/o/$org/cron', word: 'Cron jobs', icon: 'cron' },
      { to: '/o/$org/channels', word: 'Channels', icon: 'bell' },
    ],
  },
  {
    title: 'Customers',
    places: [
      { to: '/o/$org/applications', word: 'Applications', icon: 'apps' },
      { to: '/o/$org/event-types', word: 'Event catalog', icon: 'catalog' },
    ],
  },
  {
    title: 'Installation',
    places: [
      { to: '/o/$org/access', word: 'Keys and sessions', icon: 'key' },
      { to: '/o/$org/installation', word: 'Installation', icon: 'server' },
    ],
  },
];
