import { Gauge, type Registry } from 'prom-client';
import { version } from './version.ts';

/** Which version of the program this process is. */
export function buildInfo(registry: Registry): void {
  new Gauge({
    name: 'posthorn_build_info',
    help: 'Always 1; the label has the version of Posthorn that the process runs.',
    labelNames: ['version'],
    registers: [registry],
  }).set({ version }, 1);
}
