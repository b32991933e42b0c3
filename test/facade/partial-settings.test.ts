import { startFacadeWorld } from './facade-world.ts';
import { describePartialSettings } from './suites/partial-settings.ts';

describePartialSettings(() => startFacadeWorld());
