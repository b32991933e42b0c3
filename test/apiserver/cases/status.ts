import type { PosthornKind } from '../../../src/resources/kinds.ts';
import { many, text } from './case.ts';

/** A status on which the API server and `admitStatus` must agree. */
export interface StatusCase {
  name: string;
  kind: PosthornKind;
  status: unknown;
  invalid?: string;
}

const ready = {
  type: 'Ready',
  status: 'True',
  reason: 'Programmed',
  message: '',
  lastTransitionTime: '2026-01-31T12:00:00Z',
  observedGeneration: 1,
};
const conditions = (...list: unknown[]) => ({ conditions: list });
const source = (name: string, status: unknown, invalid?: string): StatusCase => ({
  name,
  kind: 'Source',
  status,
  ...(invalid !== undefined && { invalid }),
});
const route = (name: string, status: unknown, invalid?: string): StatusCase => ({ ...source(name, status, invalid), kind: 'Route' });

export const statusCases: StatusCase[] = [
  source('nothing', {}),
  source('everything', { observedGeneration: 1, id: 'src_abc', ingestPath: '/ingest/acme/github', ...conditions(ready) }),
  source('nulls, which are dropped', { observedGeneration: null, conditions: null }),
  source('a condition without a reason', conditions({ ...ready, reason: '' }), 'status.conditions[0].reason'),
  source('a condition whose status is a boolean', conditions({ ...ready, status: true }), 'status.conditions[0].status'),
  source('a condition without a time', conditions({ ...ready, lastTransitionTime: null }), 'status.conditions[0].lastTransitionTime'),
  source('a condition without an observed generation', conditions({ ...ready, observedGeneration: null })),
  source('a condition that is there twice', conditions(ready, { ...ready, status: 'False' }), 'status.conditions[1]'),
  source('16 conditions', conditions(...many(16, (index) => ({ ...ready, type: `T${index}` })))),
  source('17 conditions', conditions(...many(17, (index) => ({ ...ready, type: `T${index}` }))), 'status.conditions'),
  source('a message of 32768 characters', conditions({ ...ready, message: text(32768) })),
  source('a message of 32769 characters', conditions({ ...ready, message: text(32769) }), 'status.conditions[0].message'),
  source('an unknown field', { phase: 'Ready' }, 'status.phase'),
  source('a generation below 0', { observedGeneration: -1 }, 'status.observedGeneration'),
  source('a list', [], 'status'),
  route('an open circuit', { circuit: { state: 'open', since: '2026-01-31T12:00:00Z' } }),
  route('a circuit without a state', { circuit: { since: '2026-01-31T12:00:00Z' } }, 'status.circuit.state'),
  route('a circuit in an unknown state', { circuit: { state: 'ajar' } }, 'status.circuit.state'),
];
