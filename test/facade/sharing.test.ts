import { startFacadeWorld } from './facade-world.ts';
import { describeSharing } from './suites/sharing.ts';

describeSharing(() => startFacadeWorld());
