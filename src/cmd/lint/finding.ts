import type { Place } from '../../runtime/manifests/places.ts';

/** Something in a manifest that is wrong, has no effect, or cannot be checked without the cluster. Its position is that of the field, or of what is around it. */
export interface LintFinding extends Place {
  severity: 'error' | 'warning';
  file: string;
  /** Absent: the document could not be read. */
  kind?: string;
  namespace?: string;
  name?: string;
  /** Path of the field, such as `spec.http.url`; absent: the object as a whole. */
  field?: string;
  /**
   * CamelCase: of the condition in a cluster; `Invalid` where the API server would refuse the object; `NoEffect`, `Duplicate`; of a file `Unreadable`,
   * `Truncated`, `EmptyFile`, `EmptyDocument`, `UnclearYaml`.
   */
  reason: string;
  message: string;
}
