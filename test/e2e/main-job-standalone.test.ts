import { describeMainJob } from './main-job.ts';
import { startStandaloneWorld } from './standalone-world.ts';

describeMainJob('standalone', startStandaloneWorld);
