import type { AllowedEgress } from './network-policy.ts';

/** Settings of the workers of every pool of an installation. */
export interface PoolDefaults {
  /** Null: a pool must name its own. */
  image: string | null;
  imagePullSecrets: readonly string[];
  /** Objects whose keys are environment variables; later ones go before earlier ones, and Secrets before ConfigMaps. */
  configMaps: readonly string[];
  secrets: readonly string[];
  /** User and group; null: the platform assigns them. */
  user: number | null;
  /** Objects whose keys are files below `path`. */
  mounts: readonly { kind: 'ConfigMap' | 'Secret'; name: string; path: string }[];
  /** Peers of a NetworkPolicy that may read health and metrics; none: all may. */
  metricsFrom: readonly Record<string, unknown>[];
}

/** Inputs of a pool's objects beside the pool itself. */
export interface PoolSetting {
  defaults: PoolDefaults;
  image: string;
  /** Changes when anything that pods read only at their start does. */
  configHash: string;
  opsPort: number;
  /** Openings of the NetworkPolicy. */
  egress: AllowedEgress;
  /** Null: another owner sets the number of pods. */
  replicas: number | null;
}
