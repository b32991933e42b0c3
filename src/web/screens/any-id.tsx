import type { ReactElement } from 'react';
import { Page } from '../app/page.tsx';

export function AnyId(): ReactElement {
  return <Page title="Id">{null}</Page>;
}
