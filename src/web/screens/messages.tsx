import type { ReactElement } from 'react';
import { Page } from '../app/page.tsx';

export function Messages(): ReactElement {
  return <Page title="Messages">{null}</Page>;
}
