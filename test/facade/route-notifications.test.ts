import { startFacadeWorld } from './facade-world.ts';
import { describeRouteNotifications } from './suites/route-notifications.ts';

describeRouteNotifications(() => startFacadeWorld());
