import { startFacadeWorld } from './facade-world.ts';
import { describeFields } from './suites/fields.ts';

describeFields(() => startFacadeWorld());
