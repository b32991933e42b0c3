import { startFacadeWorld } from './facade-world.ts';
import { describeManifests } from './suites/manifests.ts';

describeManifests(() => startFacadeWorld());
