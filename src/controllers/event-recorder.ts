import type { PosthornKind } from '../resources/kinds.ts';

/** Something worth telling a person about one object: a transition, never a state that merely lasts. */
export interface ObjectEvent {
  object: {
    apiVersion: string;
    kind: PosthornKind | 'ConfigMap';
    metadata: { name: string; namespace?: string; uid: string; resourceVersion: string };
  };
  type: 'Normal' | 'Warning';
  /** CamelCase, stable. */
  reason: string;
  message: string;
}

/** Records transitions as Events for people. Recording neither blocks nor fails. */
export interface EventRecorder {
  record(event: ObjectEvent): void;
}
