interface NodePod {
  name: string;
  namespace: string;
  /** Any that has Node. */
  image: string;
  command: readonly string[];
  env?: readonly { name: string; value: string }[];
}

/** A pod outside of the installation that runs a program of Node, within restricted PodSecurity. */
export function nodePod({ name, namespace, image, command, env = [] }: NodePod): object {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace },
    spec: {
      restartPolicy: 'Never',
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      securityContext: { runAsNonRoot: true, runAsUser: 1000, seccompProfile: { type: 'RuntimeDefault' } },
      containers: [
        {
          name,
          image,
          imagePullPolicy: 'IfNotPresent',
          command,
          env,
          securityContext: { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } },
        },
      ],
    },
  };
}
