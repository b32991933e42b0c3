{{/* What values name and the cluster does not have: one line for each. Nothing where manifests are rendered without a look at the cluster: `lookup` finds no
     list of ServiceAccounts there, not even an empty one. */}}
{{- define "posthorn.absentReferences" -}}
{{- $v := .Values -}}
{{- if and $v.checkReferences (hasKey (lookup "v1" "ServiceAccount" .Release.Namespace "") "items") -}}
{{- $named := list -}}
{{- with $v.encryptionKeys.existingSecret }}{{ $named = append $named (list "encryptionKeys.existingSecret" "Secret" . (list "POSTHORN_ENCRYPTION_KEYS")) }}{{ end -}}
{{- if $v.apiKey.create }}{{ with $v.apiKey.existingSecret }}{{ $named = append $named (list "apiKey.existingSecret" "Secret" . (list $v.apiKey.key)) }}{{ end }}{{ end -}}
{{- with $v.redis.existingSecret }}{{ $named = append $named (list "redis.existingSecret" "Secret" . (list "POSTHORN_REDIS_URL")) }}{{ end -}}
{{- with $v.redis.tls.caSecret }}{{ $named = append $named (list "redis.tls.caSecret" "Secret" . (list $v.redis.tls.caKey)) }}{{ end -}}
{{- with $v.redis.tls.certificateSecret }}{{ $named = append $named (list "redis.tls.certificateSecret" "Secret" . (list "tls.crt" "tls.key")) }}{{ end -}}
{{- with $v.egress.proxySecret }}{{ $named = append $named (list "egress.proxySecret" "Secret" . (list "POSTHORN_EGRESS_PROXY_URL")) }}{{ end -}}
{{- with $v.smtp.existingSecret }}{{ $named = append $named (list "smtp.existingSecret" "Secret" . (list "POSTHORN_SMTP_PASSWORD")) }}{{ end -}}
{{- range $component := list "controller" "api" "ingest" "delivery" -}}
{{- range (index $v $component).extraEnv -}}
{{- $value := printf "%s.extraEnv, for %s," $component .name -}}
{{- range $field, $reference := .valueFrom -}}
{{- $kind := get (dict "secretKeyRef" "Secret" "configMapKeyRef" "ConfigMap") $field -}}
{{- if and $kind (not $reference.optional) }}{{ $named = append $named (list $value $kind $reference.name (list $reference.key)) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $named -}}
{{- $value := index . 0 -}}
{{- $what := printf "%s %s" (index . 1) (index . 2) -}}
{{- $found := lookup "v1" (index . 1) $.Release.Namespace (index . 2) -}}
{{- if not $found }}
{{ $value }} names the {{ $what }}: it does not exist in the namespace {{ $.Release.Namespace }}
{{- else }}
{{- range $key := index . 3 }}
{{- if not (or (hasKey ($found.data | default dict) $key) (hasKey ($found.binaryData | default dict) $key)) }}
{{ $value }} names the {{ $what }}: it has no key {{ $key }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}
{{- if and (include "posthorn.bundlesRedis" .) $v.redis.bundled.storage.enabled -}}
{{- with $v.redis.bundled.storage.className }}
{{- if not (lookup "storage.k8s.io/v1" "StorageClass" "" .) }}
redis.bundled.storage.className names the StorageClass {{ . }}: it does not exist
{{- end }}
{{- end }}
{{- end -}}
{{- range $component := list "controller" "api" "ingest" "delivery" -}}
{{- with (index $v $component).priorityClassName }}
{{- if not (lookup "scheduling.k8s.io/v1" "PriorityClass" "" .) }}
{{ $component }}.priorityClassName names the PriorityClass {{ . }}: it does not exist
{{- end }}
{{- end }}
{{- end -}}
{{- end -}}
{{- end -}}
