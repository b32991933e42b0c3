{{/* Values that values.schema.json cannot judge, or not in words: one line for each that the installation would not run with. */}}
{{- define "posthorn.mistakes" -}}
{{- $v := .Values -}}
{{- with $v.delivery.autoscaling -}}
{{- if .enabled -}}
{{- if gt (int .min) (int .max) }}
delivery.autoscaling.min is {{ int .min }}: it must be at most delivery.autoscaling.max, which is {{ int .max }}
{{- end }}
{{- if and (ne .mode "builtin") (lt (int .min) 1) }}
delivery.autoscaling.min is 0: it must be at least 1 with the mode {{ .mode }}; only builtin scales to 0
{{- end }}
{{- end -}}
{{- end -}}
{{- range $component := list "api" "ingest" }}
{{- with (index $v $component).autoscaling }}
{{- if and .enabled (gt (int .minReplicas) (int .maxReplicas)) }}
{{ $component }}.autoscaling.minReplicas is {{ int .minReplicas }}: it must be at most {{ $component }}.autoscaling.maxReplicas, which is {{ int .maxReplicas }}
{{- end }}
{{- end }}
{{- end }}
{{- if regexMatch "^/(api|console|docs|ingest|livez|mail-confirmation|metrics|openapi.json|portal|readyz)(/|$)" $v.console.basePath }}
console.basePath is {{ $v.console.basePath }}: it must not begin with a path that Posthorn answers itself, such as /api or /console
{{- end }}
{{- if hasPrefix "kube-" $v.organization.namespace }}
organization.namespace is {{ $v.organization.namespace }}: it must not be a namespace of Kubernetes itself (kube-*)
{{- end }}
{{- if and $v.organization.create (eq $v.organization.namespace .Release.Namespace) }}
organization.namespace is {{ $v.organization.namespace }}: it must not be the namespace of the installation
{{- end }}
{{- range $name, $networks := dict "organization.allowedCidrs" $v.organization.allowedCidrs "egress.allowedCidrs" $v.egress.allowedCidrs "api.trustedProxies" $v.api.trustedProxies "api.service.loadBalancerSourceRanges" $v.api.service.loadBalancerSourceRanges "ingest.service.loadBalancerSourceRanges" $v.ingest.service.loadBalancerSourceRanges }}
{{- range $networks }}
{{- if not (include "posthorn.isNetwork" .) }}
{{ $name }} has {{ quote . }}: it must be a network such as 10.0.0.0/8 or fd00::/8
{{- end }}
{{- end }}
{{- end }}
{{- range $name, $hosts := dict "organization.allowedHosts" $v.organization.allowedHosts "egress.allowedHosts" $v.egress.allowedHosts }}
{{- range $hosts }}
{{- if not (regexMatch "^(\\*\\.)?[A-Za-z0-9_]([-A-Za-z0-9_.]*[A-Za-z0-9_])?$" .) }}
{{ $name }} has {{ quote . }}: it must be a host name; *. may precede it
{{- end }}
{{- end }}
{{- end }}
{{- range $name, $image := dict "image" $v.image "redis.bundled.image" $v.redis.bundled.image }}
{{- if not (regexMatch "^[^\\s@:]+(:[0-9]+/[^\\s@:]+)?$" $image.repository) }}
{{ $name }}.repository is {{ quote $image.repository }}: it must be the name of an image without a tag
{{- end }}
{{- if not (regexMatch "^([A-Za-z0-9_][-A-Za-z0-9_.]{0,127}(@sha256:[0-9a-f]{64})?)?$" $image.tag) }}
{{ $name }}.tag is {{ quote $image.tag }}: it must be a tag of an image: letters, digits, _, . and -
{{- end }}
{{- end }}
{{- range $name, $resources := dict "controller" $v.controller.resources "api" $v.api.resources "ingest" $v.ingest.resources "delivery" $v.delivery.resources "redis.bundled" $v.redis.bundled.resources }}
{{- range $part, $quantities := pick $resources "requests" "limits" }}
{{- range $resource, $quantity := $quantities }}
{{- if not (regexMatch "^[+]?([0-9]+(\\.[0-9]*)?|\\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][-+]?[0-9]+)?$" (toString $quantity)) }}
{{ $name }}.resources.{{ $part }}.{{ $resource }} is {{ toString $quantity | quote }}: it must be a quantity such as 500m or 512Mi
{{- end }}
{{- end }}
{{- end }}
{{- range $part := without (keys $resources | sortAlpha) "requests" "limits" "claims" }}
{{ $name }}.resources.{{ $part }} is not known: resources have requests and limits
{{- end }}
{{- end }}
{{- range $component := list "controller" "api" "ingest" "delivery" }}
{{- with index $v $component }}
{{- range .extraEnv }}
{{- if not (regexMatch "^[A-Za-z_][A-Za-z0-9_]*$" .name) }}
{{ $component }}.extraEnv has the name {{ quote .name }}: it must be letters, digits and _
{{- end }}
{{- if and (hasKey . "value") (hasKey . "valueFrom") }}
{{ $component }}.extraEnv has value and valueFrom for {{ .name }}: give one of them
{{- end }}
{{- if eq $component "delivery" }}
{{- with .valueFrom }}
{{- if eq (hasKey . "secretKeyRef") (hasKey . "configMapKeyRef") }}
delivery.extraEnv must have one of secretKeyRef and configMapKeyRef in each valueFrom
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- $volumes := list }}
{{- range .extraVolumes }}
{{- $volumes = append $volumes .name }}
{{- if not (regexMatch "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$" .name) }}
{{ $component }}.extraVolumes has the name {{ quote .name }}: it must be lower-case letters, digits and -
{{- end }}
{{- if hasKey (include "posthorn.files" (list $ $component) | fromYaml) .name }}
{{ $component }}.extraVolumes has {{ .name }}: the chart has a volume of this name
{{- end }}
{{- if and (eq $component "delivery") (eq (hasKey . "configMap") (hasKey . "secret")) }}
delivery.extraVolumes must have one of configMap and secret in {{ .name }}
{{- end }}
{{- end }}
{{- if ne (len $volumes) (len (uniq $volumes)) }}
{{ $component }}.extraVolumes has a name twice
{{- end }}
{{- range .extraVolumeMounts }}
{{- if not (has .name $volumes) }}
{{ $component }}.extraVolumeMounts names {{ .name }}: {{ $component }}.extraVolumes does not have it
{{- end }}
{{- if not (regexMatch "^/[^:]*$" .mountPath) }}
{{ $component }}.extraVolumeMounts has {{ quote .mountPath }}: it must be an absolute path without :
{{- end }}
{{- end }}
{{- range .hostAliases }}
{{- if not (regexMatch "^[0-9A-Fa-f:.]+$" .ip) }}
{{ $component }}.hostAliases has {{ quote .ip }}: it must be an IP address
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- $delivered := merge (deepCopy $v.delivery.podLabels) $v.labels }}
{{- range $name, $labels := dict "labels" $v.labels "controller.podLabels" $v.controller.podLabels "api.podLabels" $v.api.podLabels "ingest.podLabels" $v.ingest.podLabels "delivery.podLabels" $v.delivery.podLabels }}
{{- range $key, $value := $labels }}
{{- if or (not (regexMatch "^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$" $value)) (gt (len $value) 63) }}
{{ $name }}.{{ $key }} is {{ quote $value }}: it must be the value of a label, of at most 63 letters, digits, -, _ and .
{{- end }}
{{- end }}
{{- end }}
{{- if gt (len $delivered) 64 }}
labels and delivery.podLabels are {{ len $delivered }} together: workers take at most 64
{{- end }}
{{- if hasKey $v.annotations "helm.sh/resource-policy" }}
annotations has helm.sh/resource-policy: Helm would keep every object of the release
{{- end }}
{{- $hosts := list }}
{{- with $v.ingress.host }}{{ $hosts = append $hosts . }}{{ end }}
{{- range $v.ingress.hosts }}{{ $hosts = append $hosts .host }}{{ end }}
{{- if ne (len $hosts) (len (uniq $hosts)) }}
ingress.hosts has a host twice, or that of ingress.host
{{- end }}
{{- range $component := list "api" "ingest" }}
{{- with (index $v $component).service }}
{{- if and (ne .type "LoadBalancer") (or .loadBalancerClass .loadBalancerSourceRanges) }}
{{ $component }}.service.type is {{ .type }}: loadBalancerClass and loadBalancerSourceRanges need LoadBalancer
{{- end }}
{{- if and (eq .type "ClusterIP") .externalTrafficPolicy }}
{{ $component }}.service.type is ClusterIP: externalTrafficPolicy needs NodePort or LoadBalancer
{{- end }}
{{- end }}
{{- end }}
{{- if and $v.redis.url $v.redis.existingSecret }}
redis.url and redis.existingSecret are both set: give one of them
{{- end }}
{{- if and (ne $v.redis.mode "single") (include "posthorn.bundlesRedis" .) }}
redis.mode is {{ $v.redis.mode }}: it needs redis.url or redis.existingSecret, with the addresses of the {{ ternary "sentinels" "nodes" (eq $v.redis.mode "sentinel") }}
{{- end }}
{{- if include "posthorn.bundlesRedis" . }}
{{- $limit := dig "limits" "memory" "" $v.redis.bundled.resources | toString }}
{{- $max := include "posthorn.redisBytes" $v.redis.bundled.maxMemory | float64 }}
{{- $most := include "posthorn.memoryBytes" $limit | float64 }}
{{- if and (gt $most 0.0) (gt $max $most) }}
redis.bundled.maxMemory is {{ $v.redis.bundled.maxMemory }}: it must be at most redis.bundled.resources.limits.memory, which is {{ $limit }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Whether a text is a network in CIDR notation: "true", or nothing. */}}
{{- define "posthorn.isNetwork" -}}
{{- $byte := "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])" -}}
{{- if regexMatch (printf "^%s(\\.%s){3}/(3[0-2]|[12]?[0-9])$" $byte $byte) . -}}true
{{- else if regexMatch "^[0-9A-Fa-f]{0,4}(:[0-9A-Fa-f]{0,4}){2,7}/(12[0-8]|1[01][0-9]|[1-9]?[0-9])$" . -}}true{{- end -}}
{{- end -}}

{{/* Bytes of a memory size as Redis reads it, such as 384mb. */}}
{{- define "posthorn.redisBytes" -}}
{{- $factors := dict "" 1 "k" 1000 "kb" 1024 "m" 1000000 "mb" 1048576 "g" 1000000000 "gb" 1073741824 "t" 1000000000000 "tb" 1099511627776 -}}
{{- mulf (regexFind "^[0-9]+" . | float64) (index $factors (regexFind "[a-z]*$" .)) -}}
{{- end -}}

{{/* Bytes of a quantity of Kubernetes; 0 where it is none. */}}
{{- define "posthorn.memoryBytes" -}}
{{- $factors := dict "" 1 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 "k" 1000 "M" 1000000 "G" 1000000000 "T" 1000000000000 -}}
{{- $unit := regexFind "[A-Za-z]*$" . -}}
{{- if and (regexMatch "^[0-9]+(\\.[0-9]+)?[A-Za-z]*$" .) (hasKey $factors $unit) -}}
{{- mulf (regexFind "^[0-9.]+" . | float64) (index $factors $unit) -}}
{{- else }}0{{ end -}}
{{- end -}}
