{{/* A setting, unless its value is empty: (list "NAME" value). */}}
{{- define "posthorn.setting" -}}
{{- if index . 1 }}
{{ index . 0 }}: {{ index . 1 | toString | quote }}
{{- end -}}
{{- end -}}

{{/* Variables that are no secrets, as a map: those of every role. */}}
{{- define "posthorn.settings.process" -}}
{{- $v := .Values -}}
{{- $redis := $v.redis -}}
POSTHORN_INSTALLATION: {{ $v.installation | quote }}
POSTHORN_LOG_LEVEL: {{ $v.logLevel }}
POSTHORN_SHARDS: {{ $v.shards | quote }}
POSTHORN_DRAIN_SECONDS: {{ $v.drainSeconds | quote }}
POSTHORN_REDIS_KEY_PREFIX: {{ $v.keyPrefix | quote }}
POSTHORN_REDIS_URL_FILE: /etc/posthorn/redis/POSTHORN_REDIS_URL
POSTHORN_REDIS_MODE: {{ $redis.mode }}
{{- if eq $redis.mode "sentinel" }}
POSTHORN_REDIS_SENTINEL_MASTER: {{ $redis.sentinel.master | quote }}
POSTHORN_REDIS_SENTINEL_PASSWORD_FILE: /etc/posthorn/redis/POSTHORN_REDIS_SENTINEL_PASSWORD
{{- include "posthorn.setting" (list "POSTHORN_REDIS_SENTINEL_USERNAME" $redis.sentinel.username) }}
{{- end }}
{{- if $redis.tls.caSecret }}
POSTHORN_REDIS_CA_FILE: {{ printf "/etc/posthorn/redis-ca/%s" $redis.tls.caKey | quote }}
{{- end }}
{{- if $redis.tls.certificateSecret }}
POSTHORN_REDIS_CERT_FILE: /etc/posthorn/redis-certificate/tls.crt
POSTHORN_REDIS_KEY_FILE: /etc/posthorn/redis-certificate/tls.key
{{- end }}
{{- end -}}

{{/* Those of the roles that read resources or deliver what they say. */}}
{{- define "posthorn.settings.common" -}}
{{ include "posthorn.settings.process" . }}
POSTHORN_WAREHOUSE_PLATFORM_IDENTITY: {{ .Values.warehouse.platformIdentity | quote }}
POSTHORN_ALLOW_INSECURE_ENDPOINTS: {{ .Values.webhooks.allowInsecureEndpoints | quote }}
{{- include "posthorn.setting" (list "POSTHORN_MAIL_DOMAINS" (join "," .Values.smtp.allowedDomains)) }}
{{- if .Values.smtp.requireConfirmation }}
POSTHORN_MAIL_CONFIRMATION: "true"
{{- end }}
{{- include "posthorn.setting" (list "POSTHORN_PUBLIC_URL" .Values.api.publicUrl) }}
{{- end -}}

{{/* Where senders reach /ingest/, and what else judges them: the same in every role that takes events or shows where they go. */}}
{{- define "posthorn.settings.senders" -}}
{{- include "posthorn.setting" (list "POSTHORN_PUBLIC_INGEST_URL" (.Values.ingest.publicUrl | default .Values.api.publicUrl)) }}
{{- include "posthorn.setting" (list "POSTHORN_REDIS_MEMORY_LIMIT" .Values.redis.memoryLimit) }}
{{- include "posthorn.setting" (list "POSTHORN_TRUSTED_PROXIES" (join "," .Values.api.trustedProxies)) }}
{{- include "posthorn.setting" (list "POSTHORN_BASE_PATH" .Values.console.basePath) }}
{{- end -}}

{{/* What the controllers give the workers of every DeliveryPool comes last. */}}
{{- define "posthorn.settings.controller" -}}
{{ include "posthorn.settings.common" . }}
POSTHORN_SECRET_CONSENT: {{ .Values.secrets.requireConsent | quote }}
POSTHORN_INSTALLATION_NAME: {{ include "posthorn.fullname" . }}
{{- if .Values.apiKey.create }}
POSTHORN_API_KEY_FILE: /etc/posthorn/api-key/api-key
{{- end }}
POSTHORN_BOOTSTRAP_DIR: /etc/posthorn/bootstrap
POSTHORN_BOOTSTRAP_CONFIG_MAP: {{ include "posthorn.fullname" . }}-bootstrap
POSTHORN_IMAGE: {{ include "posthorn.image" . | quote }}
{{- include "posthorn.setting" (list "POSTHORN_IMAGE_PULL_SECRETS" (join "," .Values.image.pullSecrets)) }}
POSTHORN_DELIVERY_RUN_AS_USER: {{ with .Values.podSecurity.runAsUser }}{{ int64 . | quote }}{{ else }}platform{{ end }}
{{- with .Values.networkPolicies.metricsFrom }}
POSTHORN_DELIVERY_METRICS_FROM: {{ toJson . | replace "$" "$$" | quote }}
{{- end }}
POSTHORN_DELIVERY_CONFIG_MAPS: {{ include "posthorn.fullname" . }}-delivery
POSTHORN_DELIVERY_SECRETS: {{ list (include "posthorn.encryptionSecret" .) .Values.egress.proxySecret .Values.smtp.existingSecret | compact | join "," | quote }}
{{- $mounts := list }}
{{- range $name, $source := include "posthorn.files" (list . "delivery") | fromYaml }}
{{- $mounts = append $mounts (printf "%s=/etc/posthorn/%s" (ternary (print "secret/" (dig "secret" "secretName" "" $source)) (print "configmap/" (dig "configMap" "name" "" $source)) (hasKey $source "secret")) $name) }}
{{- end }}
{{- include "posthorn.setting" (list "POSTHORN_DELIVERY_MOUNTS" (join "," $mounts)) }}
{{- end -}}

{{- define "posthorn.settings.api" -}}
{{ include "posthorn.settings.common" . }}
POSTHORN_API_INGEST: {{ ne .Values.api.ingest "Off" | quote }}
{{- include "posthorn.settings.senders" . }}
{{- if not .Values.console.enabled }}
POSTHORN_CONSOLE: "off"
{{- end }}
{{- if ne .Values.console.theme "auto" }}
POSTHORN_CONSOLE_THEME: {{ .Values.console.theme | quote }}
{{- end }}
{{- with .Values.console.views }}
POSTHORN_CONSOLE_VIEWS: {{ toJson . | replace "$" "$$" | quote }}
{{- end }}
{{- include "posthorn.setting" (list "POSTHORN_TOKEN_AUDIENCES" (join "," .Values.api.tokenAudiences)) }}
{{- include "posthorn.setting" (list "POSTHORN_WEBHOOK_RETRY_DELAYS" (join "," .Values.webhooks.retryDelaysSeconds)) }}
{{- end -}}

{{- define "posthorn.settings.ingest" -}}
{{ include "posthorn.settings.process" . }}
{{- include "posthorn.settings.senders" . }}
{{- include "posthorn.settings.payloads" . }}
{{- end -}}

{{/* The size of payloads: the same where they are taken and where they are read. */}}
{{- define "posthorn.settings.payloads" -}}
{{- if ne (int64 .Values.ingest.maxPayloadBytes) 1048576 }}
POSTHORN_MAX_PAYLOAD_BYTES: {{ int64 .Values.ingest.maxPayloadBytes | quote }}
{{- end }}
{{- end -}}

{{- define "posthorn.settings.delivery" -}}
{{- $v := .Values -}}
{{ include "posthorn.settings.common" . }}
{{- include "posthorn.settings.payloads" . }}
POSTHORN_WAREHOUSE_BATCH_SECONDS: {{ $v.warehouse.batchSeconds | quote }}
POSTHORN_ATTEMPT_DETAIL: {{ $v.delivery.attemptDetail | quote }}
{{- include "posthorn.setting" (list "POSTHORN_REDIS_MEMORY_LIMIT" $v.redis.memoryLimit) }}
{{- include "posthorn.setting" (list "POSTHORN_EGRESS_ALLOWED_CIDRS" (join "," $v.egress.allowedCidrs)) }}
{{- include "posthorn.setting" (list "POSTHORN_EGRESS_ALLOWED_HOSTS" (join "," $v.egress.allowedHosts)) }}
{{- with $v.policies.egressHosts }}
{{- if .enabled }}
{{- $hosts := .hosts }}
{{- range $organization, $own := .organizations }}
{{- range $own }}
{{- $hosts = append $hosts (printf "%s/%s" $organization .) }}
{{- end }}
{{- end }}
POSTHORN_EGRESS_ONLY_HOSTS: {{ join "," $hosts | default "-" | quote }}
{{- end }}
{{- end }}
{{- if $v.egress.caCertificates }}
POSTHORN_EGRESS_CA_FILE: /etc/posthorn/egress-ca/ca.crt
{{- end }}
{{- include "posthorn.setting" (list "POSTHORN_WEBHOOK_RETRY_DELAYS" (join "," $v.webhooks.retryDelaysSeconds)) }}
POSTHORN_WEBHOOK_DISABLE_AFTER_HOURS: {{ $v.webhooks.disableAfterHours | quote }}
{{- include "posthorn.setting" (list "POSTHORN_WAREHOUSE_S3_ENDPOINT" $v.warehouse.s3Endpoint) }}
{{- include "posthorn.setting" (list "POSTHORN_WAREHOUSE_GCS_ENDPOINT" $v.warehouse.gcsEndpoint) }}
{{- include "posthorn.setting" (list "POSTHORN_WAREHOUSE_AZURE_ENDPOINT" $v.warehouse.azureEndpoint) }}
{{- if $v.smtp.host }}
POSTHORN_SMTP_HOST: {{ $v.smtp.host | quote }}
POSTHORN_SMTP_TLS: {{ $v.smtp.tls | quote }}
POSTHORN_SMTP_FROM: {{ $v.smtp.from | quote }}
{{- include "posthorn.setting" (list "POSTHORN_SMTP_PORT" $v.smtp.port) }}
{{- include "posthorn.setting" (list "POSTHORN_SMTP_USER" $v.smtp.user) }}
POSTHORN_MAILS_PER_DAY: {{ $v.smtp.mailsPerDay | quote }}
{{- end }}
{{- end -}}

{{/* One variable out of a Secret: (list "NAME" "secret" "key"). */}}
{{- define "posthorn.secretVariable" -}}
- { name: {{ index . 0 }}, valueFrom: { secretKeyRef: { name: {{ index . 1 | quote }}, key: {{ index . 2 | quote }} } } }
{{- end -}}

{{/* The environment of a component's container: (list $ "api"). */}}
{{- define "posthorn.environment" -}}
{{- $component := index . 1 -}}
{{- with index . 0 -}}
{{- range $name, $value := include (printf "posthorn.settings.%s" $component) . | fromYaml }}
- { name: {{ $name }}, value: {{ $value | quote }} }
{{- end }}
- { name: POSTHORN_ENCRYPTION_KEYS_FILE, value: /etc/posthorn/encryption/POSTHORN_ENCRYPTION_KEYS }
{{- end -}}
{{- end -}}
