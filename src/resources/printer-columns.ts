import type { PrinterColumn } from './definition.ts';

export const readyColumns: readonly PrinterColumn[] = [
  { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
  { name: 'Reason', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].reason' },
];
/** Column of every kind whose spec has the switch. */
export const enabledColumn: PrinterColumn = { name: 'Enabled', type: 'boolean', jsonPath: '.spec.enabled' };
export const ageColumn: PrinterColumn = { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' };
