import { startFacadeWorld } from './facade-world.ts';
import { describeRouteTransfer } from './suites/route-transfer.ts';

describeRouteTransfer(() => startFacadeWorld());
