import { startFacadeWorld } from './facade-world.ts';
import { describeFailover } from './suites/failover.ts';

describeFailover(() => startFacadeWorld());
