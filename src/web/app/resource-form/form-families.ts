import type { FormField } from '../../api/form-schema.ts';

/** A family that has a form. `list`: where its resources are shown, in the address; `noun`: in sentences. */
export interface Family {
  api:
    | 'sources'
    | 'destinations'
    | 'routes'
    | 'cron'
    | 'notification-channels'
    | 'webhook-applications'
    | 'webhook-endpoints'
    | 'webhook-subscriptions'
    | 'event-types';
  list: 'sources' | 'targets' | 'routes' | 'cron' | 'channels' | 'applications' | 'event-types';
  /** The member of the record that names the row of the list; default: its id. */
  row?: string;
  noun: string;
  read: () => Promise<{ fields: FormField[] }>;
}

const families: Record<string, Family> = {
  sources: { api: 'sources', list: 'sources', noun: 'source', read: () => import('../../api/forms/sources.ts') },
  destinations: { api: 'destinations', list: 'targets', noun: 'destination', read: () => import('../../api/forms/destinations.ts') },
  routes: { api: 'routes', list: 'routes', noun: 'route', read: () => import('../../api/forms/routes.ts') },
  cron: { api: 'cron', list: 'cron', noun: 'cron job', read: () => import('../../api/forms/cron.ts') },
  channels: {
    api: 'notification-channels',
    list: 'channels',
    noun: 'channel',
    read: () => import('../../api/forms/notification-channels.ts'),
  },
  applications: {
    api: 'webhook-applications',
    list: 'applications',
    noun: 'application',
    read: () => import('../../api/forms/webhook-applications.ts'),
  },
  endpoints: { api: 'webhook-endpoints', list: 'targets', noun: 'endpoint', read: () => import('../../api/forms/webhook-endpoints.ts') },
  subscriptions: {
    api: 'webhook-subscriptions',
    list: 'targets',
    row: 'endpointId',
    noun: 'subscription',
    read: () => import('../../api/forms/webhook-subscriptions.ts'),
  },
  'event-types': { api: 'event-types', list: 'event-types', noun: 'event type', read: () => import('../../api/forms/event-types.ts') },
};

/** null: no form has this name in the address. */
export function familyOf(name: string): Family | null {
  return Object.hasOwn(families, name) ? (families[name] ?? null) : null;
}
