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
{{- range $name, $networks := dict "organization.allowedCidrs" $v.organization.allowedCidrs "egress.allowedCidrs" $v.egress.allowedCidrs "api.trustedProxies" $v.api.trustedProxies }}
{{- range $networks }}
{{- if not (include "posthorn.isNetwork" .) }}
{{ $name }} has {{ quote . }}: it must be a network such as 10.0.0.0/8 or fd00::/8
{{- end }}
{{- end }}
{{- end }}
{{- range $name, $hosts := dict "organization.allowedHosts" $v.organization.allowedHosts "egress.allowedHosts" $v.egress.allowedHosts }}
{{- range $hosts }}
{{- if not (regexMatch "^(\\*\\.)?[A-Za-z0-9_]([-A-Za-z0-9_.]*[A-Za-z0-9_])?$" .) }}
{{ $name }} has {{ quote . }}: it must be a host name; *. may stand in front of it
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
