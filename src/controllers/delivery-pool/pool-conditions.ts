import { z } from 'zod';
import type { Refusal } from '../../compile/compiled.ts';
import type { ClusterObject } from '../../store/cluster-objects.ts';
import { type ConditionInputs, type Finding, readiness } from '../conditions.ts';

const condition = z.object({
  type: z.string(),
  status: z.enum(['True', 'False', 'Unknown']),
  reason: z.string().default(''),
  message: z.string().default(''),
});
const deploymentSchema = z.looseObject({
  metadata: z.looseObject({ generation: z.int().default(0) }),
  spec: z.looseObject({ replicas: z.int().default(1) }),
  status: z
    .looseObject({
      observedGeneration: z.int().default(0),
      replicas: z.int().default(0),
      readyReplicas: z.int().default(0),
      updatedReplicas: z.int().default(0),
      conditions: z.array(condition).default([]),
    })
    .prefault({}),
});

/** The state of the pods by their Deployment. */
export interface DeploymentState {
  /** Whether it has observed its latest generation. */
  isCurrent: boolean;
  /** Desired pods. */
  wanted: number;
  replicas: number;
  readyReplicas: number;
  /** Pods of the newest template. */
  updatedReplicas: number;
  available: Finding;
  progressing: Finding;
}

const unknown: Finding = { status: 'Unknown', reason: 'DeploymentUnobserved', message: 'the Deployment has no status yet' };

export function deploymentState(deployment: ClusterObject): DeploymentState {
  const { metadata, spec, status } = deploymentSchema.parse(deployment);
  const finding = (type: string): Finding => {
    const found = status.conditions.find((each) => each.type === type);
    if (found === undefined) return unknown;
    return { status: found.status, reason: found.reason === '' ? type : found.reason, message: found.message };
  };
  return {
    isCurrent: status.observedGeneration >= metadata.generation,
    wanted: spec.replicas,
    replicas: status.replicas,
    readyReplicas: status.readyReplicas,
    updatedReplicas: status.updatedReplicas,
    available: finding('Available'),
    progressing: finding('Progressing'),
  };
}

/** Reason of a Deployment whose newest pods have not come up in time. */
const deadlineExceeded = 'ProgressDeadlineExceeded';
const rolledOut = 'NewReplicaSetAvailable';

const autoscalerSchema = z.looseObject({
  status: z.looseObject({ conditions: z.array(condition).default([]) }).prefault({}),
});
/** Conditions of a HorizontalPodAutoscaler and of a ScaledObject that must be True for the number of pods to follow the backlog. */
const scalingConditions = { HorizontalPodAutoscaler: ['AbleToScale', 'ScalingActive'], ScaledObject: ['Ready'] } as const;
export type AutoscalerKind = keyof typeof scalingConditions;

export function isAutoscaler(kind: string): kind is AutoscalerKind {
  return kind in scalingConditions;
}

/** The state of an autoscaler: whether it can scale, and else why not. */
export function autoscalingFinding(kind: AutoscalerKind, autoscaler: ClusterObject): Finding {
  const { conditions } = autoscalerSchema.parse(autoscaler).status;
  const found = scalingConditions[kind].map((type) => conditions.find((each) => each.type === type));
  const failing = found.find((each) => each?.status === 'False');
  if (failing !== undefined)
    return {
      status: 'False',
      reason: failing.reason === '' ? failing.type : failing.reason,
      message: `the ${kind} does not scale: ${failing.message}`,
    };
  if (found.every((each) => each?.status === 'True')) return { status: 'True', reason: 'Scaling', message: `the ${kind} scales the pool` };
  return { status: 'Unknown', reason: 'AutoscalerUnobserved', message: `the ${kind} has not reported yet whether it can scale` };
}

/**
 * The conditions of a pool. It is Ready while it is accepted, available, and all its pods are of the newest template; that more or fewer pods
 * are coming does not change it. `refusal` is why not all of the pool's objects are applied; `isStalled` whether only an edit of it helps. `autoscaling`
 * is the status of an autoscaler, where one decides the number of pods: existing pods work without it.
 */
export function poolConditionInputs(
  state: DeploymentState | null,
  refusal: (Refusal & { isStalled: boolean }) | null,
  autoscaling: Finding | null = null,
): ConditionInputs {
  const accepted: Finding =
    refusal === null
      ? { status: 'True', reason: 'Accepted', message: '' }
      : { status: 'False', reason: refusal.reason, message: refusal.message };
  const available = state?.available ?? { status: 'False', reason: 'NoDeployment', message: 'the pool has no Deployment' };
  const progressing = state?.progressing ?? unknown;
  return {
    findings: [
      ['Accepted', accepted],
      ['Available', available],
      ['Progressing', progressing],
      ...(autoscaling === null ? [] : [['Autoscaling', autoscaling] as const]),
    ],
    ready: readiness([accepted, available, progressing, rollout(state)], {
      status: 'True',
      reason: 'Ready',
      message: 'all workers run the current pod template',
    }),
    isStalled: refusal?.isStalled === true || progressing.reason === deadlineExceeded,
  };
}

/** While it is deleted. */
export function drainingConditionInputs(pods: number): ConditionInputs {
  const message =
    pods === 0
      ? 'the Deployment is scaled to zero'
      : `${pods} ${pods === 1 ? 'worker finishes its attempts' : 'workers finish their attempts'}`;
  const draining: Finding = { status: 'False', reason: 'Draining', message };
  return {
    findings: [
      ['Accepted', { status: 'True', reason: 'Accepted', message: '' }],
      ['Available', draining],
      ['Progressing', { status: 'True', reason: 'Draining', message }],
    ],
    ready: draining,
    isStalled: false,
  };
}

function rollout(state: DeploymentState | null): Finding {
  const isOver = state?.isCurrent === true && state.progressing.reason === rolledOut && state.updatedReplicas >= state.replicas;
  if (isOver) return { status: 'True', reason: rolledOut, message: '' };
  return { status: 'False', reason: 'RollingOut', message: 'workers with the current pod template replace the earlier ones' };
}
