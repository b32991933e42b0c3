import { startFacadeWorld } from './facade-world.ts';
import { describeComplaints } from './suites/complaints.ts';

describeComplaints(() => startFacadeWorld());
