import { startFacadeWorld } from './facade-world.ts';
import { describeExplainResources } from './suites/explain-resources.ts';

describeExplainResources(() => startFacadeWorld());
