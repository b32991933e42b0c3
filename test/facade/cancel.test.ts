import { startFacadeWorld } from './facade-world.ts';
import { describeCancel } from './suites/cancel.ts';

describeCancel(() => startFacadeWorld());
