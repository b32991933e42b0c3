{{/* What the leading controller makes, as files: Helm cannot, as the kinds come with the same release. They name no namespace: that of the controller is meant. */}}
{{- define "posthorn.bootstrap" -}}
{{- $installation := .Values.installation -}}
{{- with .Values.organization -}}
{{- if .create -}}
organization.yaml: |
  apiVersion: posthorn.dev/v1alpha1
  kind: Organization
  metadata:
    name: {{ $installation | quote }}
  spec:
    namespace: {{ .namespace }}
    {{- if ne $installation "default" }}
    installation: {{ $installation | quote }}
    {{- end }}
    plan: {{ .plan }}
    {{- if or .allowedCidrs .allowedHosts }}
    egress:
      allowedCidrs: {{ toJson .allowedCidrs }}
      allowedHosts: {{ toJson .allowedHosts }}
    {{- end }}
{{ end -}}
{{- end -}}
delivery-pool.yaml: |
  apiVersion: posthorn.dev/v1alpha1
  kind: DeliveryPool
  metadata:
    name: default
    {{- if ne $installation "default" }}
    labels: { posthorn.dev/installation: {{ $installation | quote }} }
    {{- end }}
  spec:
    {{- include "posthorn.defaultPool" . | nindent 4 }}
{{- end -}}

{{- define "posthorn.defaultPool" -}}
{{- $spread := list }}
{{- with .Values.topologySpread }}
{{- if ne .zone "Off" }}{{ $spread = append $spread (dict "topologyKey" "topology.kubernetes.io/zone" "whenUnsatisfiable" .zone) }}{{ end }}
{{- if ne .hostname "Off" }}{{ $spread = append $spread (dict "topologyKey" "kubernetes.io/hostname" "whenUnsatisfiable" .hostname) }}{{ end }}
{{- end }}
{{- $root := . }}
{{- with .Values.delivery -}}
imagePullPolicy: {{ $root.Values.image.pullPolicy }}
{{- if .autoscaling.enabled }}
autoscaling: {{ omit .autoscaling "enabled" | toJson }}
{{- else }}
replicas: {{ .replicas }}
{{- end }}
concurrency: {{ .concurrency }}
terminationGracePeriodSeconds: {{ max 15 (add $root.Values.drainSeconds 10) }}
resources: {{ include "posthorn.resources" (list $root "delivery") | fromYaml | toJson }}
networkPolicy: { enabled: {{ $root.Values.networkPolicies.enabled }} }
{{- with .serviceAccountAnnotations }}
serviceAccount: { annotations: {{ toJson . }} }
{{- end }}
podTemplate:
  labels: {{ merge (deepCopy .podLabels) $root.Values.labels | toJson }}
  annotations: {{ toJson .podAnnotations }}
  nodeSelector: {{ toJson .nodeSelector }}
  tolerations: {{ toJson .tolerations }}
  {{- with .affinity }}
  affinity: {{ toJson . }}
  {{- end }}
  {{- with .priorityClassName }}
  priorityClassName: {{ . | quote }}
  {{- end }}
  {{- range $field, $value := dict "hostAliases" .hostAliases "dnsConfig" .dnsConfig "volumes" .extraVolumes "volumeMounts" .extraVolumeMounts }}
  {{- with $value }}
  {{ $field }}: {{ toJson . }}
  {{- end }}
  {{- end }}
  env: {{ toJson .extraEnv }}
  topologySpreadConstraints: {{ toJson $spread }}
{{- end -}}
{{- end -}}
