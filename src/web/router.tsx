import { useQuery } from '@tanstack/react-query';
import { createRootRoute, createRoute, createRouter, type ErrorComponentProps, Navigate, Outlet } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { basePath } from './api/base.ts';
import { currentSession } from './api/session.ts';
import { listFilters } from './app/list-filters.ts';
import { Shell } from './app/shell.tsx';
import { screen } from './screen.tsx';
import { Empty, Failure, Loading } from './ui/notices.tsx';

type Search<Name extends string> = { [Key in Name]?: string | undefined };

/** Reads those parameters of the address that are texts and not empty. */
function texts<const Name extends string>(...names: readonly Name[]): (search: Record<string, unknown>) => Search<Name> {
  return (search) => {
    const found: Search<Name> = {};
    for (const name of names) {
      const value = search[name];
      // The router keeps the parameter as it was sent unless it is named here.
      if (value !== undefined) found[name] = value === '' || typeof value === 'object' ? undefined : String(value);
    }
    return found;
  };
}

const root = createRootRoute({ component: Outlet, notFoundComponent: NotFound });
const start = createRoute({ getParentRoute: () => root, path: '/', component: Start });
const login = createRoute({
  getParentRoute: () => root,
  path: '/login',
  validateSearch: texts('to'),
  component: screen(() => import('./screens/login.tsx'), 'Login'),
});
const organization = createRoute({ getParentRoute: () => root, path: '/o/$org', component: Shell });
const below = { getParentRoute: () => organization };

const routeTree = root.addChildren([
  start,
  login,
  organization.addChildren([
    createRoute({
      ...below,
      path: '/overview',
      validateSearch: texts('range'),
      component: screen(() => import('./screens/overview.tsx'), 'Overview'),
    }),
    createRoute({
      ...below,
      path: '/live',
      validateSearch: texts(
        'topic',
        'at',
        'id',
        'status',
        'sourceId',
        'routeId',
        'destinationId',
        'applicationId',
        'endpointId',
        'eventType',
      ),
      component: screen(() => import('./screens/live.tsx'), 'Live'),
    }),
    createRoute({
      ...below,
      path: '/targets',
      validateSearch: texts('at', 'kind', 'state', 'name'),
      component: screen(() => import('./screens/targets.tsx'), 'Targets'),
    }),
    createRoute({
      ...below,
      path: '/targets/$id',
      validateSearch: texts('range'),
      component: screen(() => import('./screens/target.tsx'), 'Target'),
    }),
    createRoute({
      ...below,
      path: '/events',
      validateSearch: texts('at', ...listFilters.events),
      component: screen(() => import('./screens/events.tsx'), 'Events'),
    }),
    createRoute({ ...below, path: '/events/$id', component: screen(() => import('./screens/event.tsx'), 'EventPage') }),
    createRoute({
      ...below,
      path: '/deliveries',
      validateSearch: texts('at', ...listFilters.deliveries),
      component: screen(() => import('./screens/deliveries.tsx'), 'Deliveries'),
    }),
    createRoute({
      ...below,
      path: '/deliveries/$id',
      validateSearch: texts('attempt', 'with'),
      component: screen(() => import('./screens/delivery.tsx'), 'DeliveryPage'),
    }),
    createRoute({
      ...below,
      path: '/messages',
      validateSearch: texts('at', ...listFilters.messages),
      component: screen(() => import('./screens/messages.tsx'), 'Messages'),
    }),
    createRoute({
      ...below,
      path: '/messages/$id',
      validateSearch: texts('attempt', 'with'),
      component: screen(() => import('./screens/message.tsx'), 'MessagePage'),
    }),
    createRoute({
      ...below,
      path: '/dead-letters',
      validateSearch: texts('at', ...listFilters['dead-letters']),
      component: screen(() => import('./screens/dead-letters.tsx'), 'DeadLetters'),
    }),
    createRoute({
      ...below,
      path: '/replays',
      validateSearch: texts('at'),
      component: screen(() => import('./screens/replays.tsx'), 'Replays'),
    }),
    createRoute({ ...below, path: '/replays/$id', component: screen(() => import('./screens/replay.tsx'), 'ReplayReport') }),
    createRoute({
      ...below,
      path: '/topology',
      validateSearch: texts('at', 'search', 'wrong', 'routes'),
      component: screen(() => import('./screens/topology.tsx'), 'Topology'),
    }),
    createRoute({
      ...below,
      path: '/sources',
      validateSearch: texts('at', 'search', 'enabled'),
      component: screen(() => import('./screens/sources.tsx'), 'Sources'),
    }),
    createRoute({
      ...below,
      path: '/routes',
      validateSearch: texts('at', 'search', 'enabled', 'sourceId', 'destinationId'),
      component: screen(() => import('./screens/routes.tsx'), 'Routes'),
    }),
    createRoute({
      ...below,
      path: '/lab',
      validateSearch: texts('kind', 'id', 'source', 'type', 'events'),
      component: screen(() => import('./screens/lab.tsx'), 'Lab'),
    }),
    createRoute({
      ...below,
      path: '/cron',
      validateSearch: texts('at', 'search', 'isActive', 'view', 'from'),
      component: screen(() => import('./screens/cron.tsx'), 'CronJobs'),
    }),
    createRoute({
      ...below,
      path: '/channels',
      validateSearch: texts('at', 'type', 'enabled'),
      component: screen(() => import('./screens/channels.tsx'), 'Channels'),
    }),
    createRoute({
      ...below,
      path: '/applications',
      validateSearch: texts('at', 'search', 'isDisabled'),
      component: screen(() => import('./screens/applications.tsx'), 'Applications'),
    }),
    createRoute({
      ...below,
      path: '/event-types',
      validateSearch: texts('at', 'search', 'category', 'isEnabled'),
      component: screen(() => import('./screens/event-types.tsx'), 'EventTypes'),
    }),
    createRoute({ ...below, path: '/access', component: screen(() => import('./screens/access.tsx'), 'Access') }),
    createRoute({ ...below, path: '/manifests/$id', component: screen(() => import('./screens/manifest.tsx'), 'ManifestPage') }),
    createRoute({
      ...below,
      path: '/$family/new',
      validateSearch: texts('applicationId', 'endpointId'),
      component: screen(() => import('./screens/resource.tsx'), 'NewResource'),
    }),
    createRoute({ ...below, path: '/$family/$id/edit', component: screen(() => import('./screens/resource.tsx'), 'EditResource') }),
    createRoute({ ...below, path: '/installation', component: screen(() => import('./screens/installation.tsx'), 'Installation') }),
    createRoute({
      ...below,
      path: '/ids',
      validateSearch: texts('ids'),
      component: screen(() => import('./screens/several-ids.tsx'), 'SeveralIds'),
    }),
    createRoute({ ...below, path: '/id/$id', component: screen(() => import('./screens/any-id.tsx'), 'AnyId') }),
  ]),
]);

/** Parameters of an address are texts: `?with=1`. */
function parseSearch(search: string): Record<string, string> {
  return Object.fromEntries(new URLSearchParams(search));
}

function stringifySearch(search: Record<string, unknown>): string {
  const found = Object.entries(search).filter(([, value]) => value !== undefined);
  const parameters = new URLSearchParams(found.map(([name, value]) => [name, String(value)]));
  return parameters.size === 0 ? '' : `?${parameters}`;
}

export const router = createRouter({
  routeTree,
  basepath: `${basePath}/console`,
  defaultPreload: 'intent',
  parseSearch,
  stringifySearch,
  defaultErrorComponent: Broken,
  defaultPendingComponent: () => <Loading what="the screen" />,
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}

/** The overview of the caller's organization. */
function Start(): ReactElement {
  const { data, error, refetch } = useQuery({ queryKey: ['session'], queryFn: ({ signal }) => currentSession(signal) });
  if (error !== null) return <Failure message={error.message} retry={() => void refetch()} />;
  if (data === undefined) return <Loading what="the session" />;
  if (data === null) return <Navigate to="/login" replace />;
  return <Navigate to="/o/$org/overview" params={{ org: data.organization.slug }} replace />;
}

/** A fault of the program: another screen, or this one again, may work. */
function Broken({ error, reset }: ErrorComponentProps): ReactElement {
  return (
    <main className="main" id="main">
      <Failure message={`The screen failed: ${error instanceof Error ? error.message : String(error)}`} retry={reset} />
    </main>
  );
}

function NotFound(): ReactElement {
  return (
    <main className="main" id="main">
      <Empty title="There is no such screen">
        <p>
          <a href={`${basePath}/console/`}>Open the console</a>
        </p>
      </Empty>
    </main>
  );
}
