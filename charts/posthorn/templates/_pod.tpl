{{/* What every container of ours may do: nothing. */}}
{{- define "posthorn.containerSecurity" -}}
{ allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: [ALL] } }
{{- end -}}

{{- define "posthorn.podSecurity" -}}
{{- with .Values.podSecurity.runAsUser -}}
{ runAsNonRoot: true, runAsUser: {{ int64 . }}, runAsGroup: {{ int64 . }}, fsGroup: {{ int64 . }}, seccompProfile: { type: RuntimeDefault } }
{{- else -}}
{ runAsNonRoot: true, seccompProfile: { type: RuntimeDefault } }
{{- end }}
{{- end -}}

{{- define "posthorn.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
  - name: {{ . | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Files of a component, as a map of directory to source. */}}
{{- define "posthorn.files" -}}
{{- $component := index . 1 -}}
{{- with index . 0 -}}
{{- /* As files, which the kubelet keeps up to date, and not as variables, which a pod is given once. */ -}}
redis: { secret: { secretName: {{ include "posthorn.redisSecret" . | quote }} } }
{{- if ne $component "delivery" }}
encryption: { secret: { secretName: {{ include "posthorn.encryptionSecret" . | quote }}, items: [{ key: POSTHORN_ENCRYPTION_KEYS, path: POSTHORN_ENCRYPTION_KEYS }] } }
{{- end }}
{{- if .Values.redis.tls.caSecret }}
redis-ca: { secret: { secretName: {{ .Values.redis.tls.caSecret | quote }} } }
{{- end }}
{{- if .Values.redis.tls.certificateSecret }}
redis-certificate: { secret: { secretName: {{ .Values.redis.tls.certificateSecret | quote }} } }
{{- end }}
{{- if and (eq $component "delivery") .Values.egress.caCertificates }}
egress-ca: { configMap: { name: {{ include "posthorn.fullname" . }}-egress-ca } }
{{- end }}
{{- if eq $component "controller" }}
bootstrap: { configMap: { name: {{ include "posthorn.fullname" . }}-bootstrap } }
{{- if .Values.apiKey.create }}
api-key: { secret: { secretName: {{ include "posthorn.apiKeySecret" . | quote }}, items: [{ key: {{ .Values.apiKey.key | quote }}, path: api-key }] } }
{{- end }}
{{- end }}
{{- end -}}
{{- end -}}

{{/* Its own affinity, and that its pods rather stand on several nodes: where nodes have no label for their zone, the scheduler looks at no constraint that is
     ScheduleAnyway, as all of them must be known of a node. (list $ "api") */}}
{{- define "posthorn.affinity" -}}
{{- $selector := include "posthorn.selector" . | fromYaml -}}
{{- $component := index . 1 -}}
{{- with index . 0 -}}
{{- $affinity := deepCopy ((index .Values $component).affinity | default dict) -}}
{{- if eq .Values.topologySpread.hostname "ScheduleAnyway" -}}
{{- $term := dict "topologyKey" "kubernetes.io/hostname" "labelSelector" (dict "matchLabels" $selector) "matchLabelKeys" (list "pod-template-hash") -}}
{{- $apart := $affinity.podAntiAffinity | default dict -}}
{{- $preferred := append ($apart.preferredDuringSchedulingIgnoredDuringExecution | default list) (dict "weight" 100 "podAffinityTerm" $term) -}}
{{- $_ := set $affinity "podAntiAffinity" (set $apart "preferredDuringSchedulingIgnoredDuringExecution" $preferred) -}}
{{- end -}}
{{- toJson $affinity -}}
{{- end -}}
{{- end -}}

{{/* The pod template of a component: (list $ "api"). */}}
{{- define "posthorn.podTemplate" -}}
{{- $component := index . 1 -}}
{{- $labels := include "posthorn.labels" . -}}
{{- $selector := include "posthorn.selector" . -}}
{{- $volumes := include "posthorn.files" . | fromYaml -}}
{{- $isServer := has $component (list "api" "ingest") -}}
{{- with index . 0 -}}
{{- $own := index .Values $component -}}
metadata:
  labels:
    {{- $labels | nindent 4 }}
    {{- with $own.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    {{- /* What the pods read once, at their start: a change rolls them. */}}
    checksum/configuration: {{ list .Values.redis.url (ternary (include "posthorn.bootstrap" .) "" (eq $component "controller")) | toJson | sha256sum }}
    {{- with $own.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "posthorn.fullname" . }}-{{ $component }}
  {{- /* Ingest has no way to Kubernetes. */}}
  automountServiceAccountToken: {{ ne $component "ingest" }}
  enableServiceLinks: false
  {{- include "posthorn.pullSecrets" . | nindent 2 }}
  terminationGracePeriodSeconds: {{ add .Values.drainSeconds (ternary 15 10 $isServer) }}
  securityContext: {{ include "posthorn.podSecurity" . }}
  {{- with $own.priorityClassName }}
  priorityClassName: {{ . | quote }}
  {{- end }}
  {{- with $own.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $own.hostAliases }}
  hostAliases:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $own.dnsConfig }}
  dnsConfig:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $own.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with include "posthorn.affinity" $ | fromYaml }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.topologySpread }}
  {{- if not (and (eq .hostname "Off") (eq .zone "Off")) }}
  topologySpreadConstraints:
    {{- range $key, $action := dict "kubernetes.io/hostname" .hostname "topology.kubernetes.io/zone" .zone }}
    {{- if ne $action "Off" }}
    - topologyKey: {{ $key }}
      maxSkew: 1
      whenUnsatisfiable: {{ $action }}
      matchLabelKeys: [pod-template-hash]
      labelSelector:
        matchLabels:
          {{- $selector | nindent 10 }}
    {{- end }}
    {{- end }}
  {{- end }}
  {{- end }}
  containers:
    - name: posthorn
      image: {{ include "posthorn.image" . | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args: [{{ $component }}]
      env:
        {{- include "posthorn.environment" (list . $component) | trim | nindent 8 }}
        {{- with $own.extraEnv }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      ports:
        {{- if $isServer }}
        - { name: http, containerPort: 8080 }
        {{- end }}
        - { name: ops, containerPort: 9090 }
      {{- if $isServer }}
      {{- /* Proxies and load balancers send to a pod for a moment after it has been told to stop. */}}
      lifecycle: { preStop: { sleep: { seconds: 5 } } }
      {{- end }}
      livenessProbe: { httpGet: { path: /livez, port: ops }, periodSeconds: 10, failureThreshold: 3 }
      readinessProbe: { httpGet: { path: /readyz, port: ops }, periodSeconds: 2 }
      startupProbe: { httpGet: { path: /livez, port: ops }, periodSeconds: 1, failureThreshold: 60 }
      resources:
        {{- include "posthorn.resources" (list . $component) | nindent 8 }}
      securityContext: {{ include "posthorn.containerSecurity" . }}
      volumeMounts:
        {{- range $name, $_ := $volumes }}
        - { name: {{ $name }}, mountPath: /etc/posthorn/{{ $name }}, readOnly: true }
        {{- end }}
        {{- with $own.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    {{- range $name, $source := $volumes }}
    - name: {{ $name }}
      {{- toYaml $source | nindent 6 }}
    {{- end }}
    {{- with $own.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end -}}
{{- end -}}

{{/* MiB of the largest payload, rounded up; 0 where no payload is above 1 MiB. */}}
{{- define "posthorn.largestMebibytes" -}}
{{- $bytes := int64 .Values.ingest.maxPayloadBytes -}}
{{- if gt $bytes 1048576 }}{{ div (add $bytes 1048575) 1048576 }}{{ else }}0{{ end -}}
{{- end -}}

{{/* MiB that ingest and each worker need above what they need for payloads up to 1 MiB: the process of the sandbox for large payloads, and 8 payloads. */}}
{{- define "posthorn.largeMemory" -}}
{{- $largest := include "posthorn.largestMebibytes" . | int -}}
{{- if $largest }}{{ add 768 (mul 8 $largest) }}{{ else }}0{{ end -}}
{{- end -}}

{{/* Of ingest or a worker: (list $ "ingest"). The memory of the chart's own values grows with the largest payload; any other is what it says. */}}
{{- define "posthorn.resources" -}}
{{- $component := index . 1 -}}
{{- with index . 0 -}}
{{- $resources := deepCopy (index .Values $component).resources -}}
{{- $largest := include "posthorn.largestMebibytes" . | int -}}
{{- if and $largest (has $component (list "ingest" "delivery")) }}
{{- if eq (dig "limits" "memory" "" $resources | toString) "512Mi" }}
{{- $_ := set $resources.limits "memory" (printf "%dMi" (add 512 (include "posthorn.largeMemory" . | int))) }}
{{- end }}
{{- if eq (dig "requests" "memory" "" $resources | toString) "128Mi" }}
{{- $_ := set $resources.requests "memory" (printf "%dMi" (add 128 (mul 4 $largest))) }}
{{- end }}
{{- end }}
{{- toYaml $resources }}
{{- end -}}
{{- end -}}

{{/* Components whose memory limit, of the user's own, is less than large payloads need, with that need in MiB. */}}
{{- define "posthorn.shortOfMemory" -}}
{{- $more := include "posthorn.largeMemory" . | int -}}
{{- if $more }}
{{- range $component := list "ingest" "delivery" }}
{{- $limit := dig "limits" "memory" "" (index $.Values $component).resources | toString }}
{{- $mebibytes := 0 }}
{{- if regexMatch "^[0-9]+Mi$" $limit }}{{ $mebibytes = trimSuffix "Mi" $limit | int }}{{ end }}
{{- if regexMatch "^[0-9]+Gi$" $limit }}{{ $mebibytes = mul 1024 (trimSuffix "Gi" $limit | int) }}{{ end }}
{{- if and $mebibytes (ne $limit "512Mi") (lt (int $mebibytes) (add 512 $more | int)) }}
{{ $component }}.resources.limits.memory is {{ $limit }}, payloads of this size need {{ add 512 $more }}Mi
{{- end }}
{{- end }}
{{- end }}
{{- end -}}
