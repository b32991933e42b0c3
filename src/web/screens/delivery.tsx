import type { ReactElement } from 'react';
import { Page } from '../app/page.tsx';

export function DeliveryStory(): ReactElement {
  return <Page title="Delivery">{null}</Page>;
}
