// Fails when package-lock.json holds a package without an integrity, under a licence that is not listed here, with an install script that is
// not listed here, from elsewhere than the registry, or for some
// platforms only; or when .npmrc lets install scripts run.
import { readFileSync } from 'node:fs';
import { type LockFile, packageComplaints } from './package-rules.ts';

const lock: LockFile = JSON.parse(readFileSync('package-lock.json', 'utf8'));
const complaints = packageComplaints(lock, readFileSync('.npmrc', 'utf8'));
for (const complaint of complaints) console.error(complaint);
if (complaints.length > 0) process.exitCode = 1;
else console.log(`package-lock.json: ${Object.keys(lock.packages).length - 1} packages keep the rules`);
