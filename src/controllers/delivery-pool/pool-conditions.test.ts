import { expect, test } from '@jest/globals';
import { autoscalingFinding, deploymentState, poolConditionInputs } from './pool-conditions.ts';

const condition = (type: string, status: string, reason: string) => ({ type, status, reason, message: `${reason}.` });
const available = condition('Available', 'True', 'MinimumReplicasAvailable');
const rolledOut = condition('Progressing', 'True', 'NewReplicaSetAvailable');
const rolling = condition('Progressing', 'True', 'ReplicaSetUpdated');

function judged(status: Record<string, unknown>, generation = 2) {
  const metadata = { name: 'posthorn-delivery-a', uid: 'u', resourceVersion: '1', generation };
  const state = deploymentState({ metadata, spec: { replicas: 3 }, status: { observedGeneration: 2, ...status } });
  const { ready, isStalled } = poolConditionInputs(state, null);
  return `${ready.status} ${ready.reason}${isStalled ? ' stalled' : ''}`;
}

test.each([
  ['its Deployment has no status yet', {}, 'Unknown DeploymentUnobserved'],
  [
    'too few pods are ready',
    { conditions: [condition('Available', 'False', 'MinimumReplicasUnavailable'), rolledOut] },
    'False MinimumReplicasUnavailable',
  ],
  ['new pods are coming up', { replicas: 4, updatedReplicas: 1, conditions: [available, rolling] }, 'False RollingOut'],
  ['old pods are going', { replicas: 4, updatedReplicas: 3, conditions: [available, rolledOut] }, 'False RollingOut'],
  ['all is as it should be', { replicas: 3, updatedReplicas: 3, conditions: [available, rolledOut] }, 'True Ready'],
  ['it grows', { replicas: 2, updatedReplicas: 2, readyReplicas: 2, conditions: [available, rolledOut] }, 'True Ready'],
  [
    'its new pods do not come up',
    { replicas: 4, updatedReplicas: 1, conditions: [available, condition('Progressing', 'False', 'ProgressDeadlineExceeded')] },
    'False ProgressDeadlineExceeded stalled',
  ],
])('a pool of which %s has the expected condition Ready', (_, status, expected) => {
  expect(judged(status)).toBe(expected);
});

test('a pool whose Deployment has not seen the newest template is not Ready', () => {
  expect(judged({ replicas: 3, updatedReplicas: 3, conditions: [available, rolledOut] }, 3)).toBe('False RollingOut');
});

test('the status of a refused pool has the reason, and the state of its pods', () => {
  const { findings, ready } = poolConditionInputs(null, { reason: 'SecretNotFound', message: 'gone', isStalled: false });
  expect(findings.map(([type, { status, reason }]) => `${type} ${status} ${reason}`)).toEqual([
    'Accepted False SecretNotFound',
    'Available False NoDeployment',
    'Progressing Unknown DeploymentUnobserved',
  ]);
  expect(ready).toMatchObject({ reason: 'SecretNotFound', message: 'gone' });
});

const able = condition('AbleToScale', 'True', 'ReadyForNewScale');
const active = condition('ScalingActive', 'True', 'ValidMetricFound');

test.each([
  ['has no status yet', 'HorizontalPodAutoscaler', [], 'Unknown AutoscalerUnobserved'],
  ['has said one thing only', 'HorizontalPodAutoscaler', [able], 'Unknown AutoscalerUnobserved'],
  ['scales', 'HorizontalPodAutoscaler', [able, active], 'True Scaling'],
  [
    'gets no metric',
    'HorizontalPodAutoscaler',
    [able, condition('ScalingActive', 'False', 'FailedGetExternalMetric')],
    'False FailedGetExternalMetric',
  ],
  ['cannot read the scale', 'HorizontalPodAutoscaler', [condition('AbleToScale', 'False', 'FailedGetScale')], 'False FailedGetScale'],
  ['is at its limit', 'HorizontalPodAutoscaler', [able, active, condition('ScalingLimited', 'True', 'TooManyReplicas')], 'True Scaling'],
  ['is ready', 'ScaledObject', [condition('Ready', 'True', 'ScaledObjectReady')], 'True Scaling'],
  ['has no trigger that works', 'ScaledObject', [condition('Ready', 'False', 'TriggerError')], 'False TriggerError'],
] as const)('an autoscaler that %s (%s)', (_, kind, conditions, expected) => {
  const metadata = { name: 'posthorn-delivery-a', uid: 'u', resourceVersion: '1' };
  const finding = autoscalingFinding(kind, { metadata, ...(conditions.length > 0 && { status: { conditions } }) });
  expect(`${finding.status} ${finding.reason}`).toBe(expected);
  const { findings } = poolConditionInputs(null, null, finding);
  expect(findings).toContainEqual(['Autoscaling', finding]);
});

test('a pool whose autoscaler does not scale is Ready while its pods are', () => {
  const metadata = { name: 'posthorn-delivery-a', uid: 'u', resourceVersion: '1', generation: 2 };
  const status = { observedGeneration: 2, replicas: 3, updatedReplicas: 3, conditions: [available, rolledOut] };
  const failing = { status: 'False', reason: 'FailedGetExternalMetric', message: '' } as const;
  expect(poolConditionInputs(deploymentState({ metadata, spec: { replicas: 3 }, status }), null, failing).ready.status).toBe('True');
});
