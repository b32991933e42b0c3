import type { ReactElement } from 'react';
import { Page } from '../app/page.tsx';

export function CronJobs(): ReactElement {
  return <Page title="Cron jobs">{null}</Page>;
}
