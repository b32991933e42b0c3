{{- define "posthorn.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* Names of the objects begin with this: the release, which need not say the chart's name twice, and the installation, unless that is default. */}}
{{- define "posthorn.fullname" -}}
{{- $name := include "posthorn.name" . -}}
{{- $installation := .Values.installation -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $base := contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) -}}
{{- if eq $installation "default" -}}
{{- $base | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" (trunc (sub 39 (len $installation) | int) $base | trimSuffix "-") $installation -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* What a Service says to load balancers, from values such as api.service. */}}
{{- define "posthorn.loadBalancer" -}}
{{- range $field := list "loadBalancerClass" "externalTrafficPolicy" }}
{{- with index $ $field }}
  {{ $field }}: {{ quote . }}
{{- end }}
{{- end }}
{{- with .loadBalancerSourceRanges }}
  loadBalancerSourceRanges: {{ toJson . }}
{{- end }}
{{- end -}}

{{/* What selects the pods of a component: (list $ "api"). */}}
{{- define "posthorn.selector" -}}
{{- $component := index . 1 -}}
{{- with index . 0 -}}
app.kubernetes.io/name: {{ include "posthorn.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: {{ $component }}
{{- end -}}
{{- end -}}

{{/* All labels of an object of a component: (list $ "api"). */}}
{{- define "posthorn.labels" -}}
{{ include "posthorn.selector" . }}
{{- with index . 0 }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Annotations of an object, with the line before them; nothing where there are none: (list $ (dict "its" "own")). */}}
{{- define "posthorn.annotations" -}}
{{- with merge (deepCopy (index . 1)) (index . 0).Values.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
{{- end }}
{{- end -}}

{{- define "posthorn.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "posthorn.encryptionSecret" -}}
{{- .Values.encryptionKeys.existingSecret | default (printf "%s-encryption" (include "posthorn.fullname" .)) -}}
{{- end -}}

{{- define "posthorn.apiKeySecret" -}}
{{- .Values.apiKey.existingSecret | default (printf "%s-api-key" (include "posthorn.fullname" .)) -}}
{{- end -}}

{{/* Whether the chart brings a Redis: "true", or nothing. */}}
{{- define "posthorn.bundlesRedis" -}}
{{- if not (or .Values.redis.url .Values.redis.existingSecret) -}}true{{- end -}}
{{- end -}}

{{- define "posthorn.redisSecret" -}}
{{- .Values.redis.existingSecret | default (printf "%s-redis" (include "posthorn.fullname" .)) -}}
{{- end -}}

{{/* Text of files/rbac and files/policies with the names of this installation in place of those in config, and the installation in place of default:
     (list $ text). */}}
{{- define "posthorn.named" -}}
{{- $text := index . 1 -}}
{{- with index . 0 -}}
{{- $name := include "posthorn.fullname" . -}}
{{- $text | replace "posthorn-organization-" (printf "%s-organization-" $name) | replace "'posthorn-system'" (printf "'%s'" .Release.Namespace) | replace ":posthorn-system:posthorn-" (printf ":%s:%s-" .Release.Namespace $name) | replace "== 'default'" (printf "== '%s'" .Values.installation) -}}
{{- end -}}
{{- end -}}

{{/* Paths below a base path, as JSON: (list basePath paths). */}}
{{- define "posthorn.below" -}}
{{- $basePath := index . 0 -}}
{{- $below := list -}}
{{- range index . 1 }}{{ $below = append $below (printf "%s%s" $basePath .) }}{{ end -}}
{{- toJson $below -}}
{{- end -}}

{{/* Which component serves which of these prefixes of paths, as JSON: /ingest/ and what is below it is not the API's, also where "/" lets
     everything in, unless api.ingest says so. (list $ paths) */}}
{{- define "posthorn.entrance" -}}
{{- $isRouted := eq (index . 0).Values.api.ingest "Routed" -}}
{{- $api := list -}}
{{- $ingest := list -}}
{{- range index . 1 -}}
{{- if and (not $isRouted) (hasPrefix "/ingest/" (printf "%s/" (trimSuffix "/" .))) -}}
{{- $ingest = append $ingest . -}}
{{- else -}}
{{- $api = append $api . -}}
{{- end -}}
{{- end -}}
{{- if and (index . 0).Values.smtp.requireConfirmation (not (has "/" $api)) (not (has "/mail-confirmation" $api)) -}}
{{- $api = append $api "/mail-confirmation" -}}
{{- end -}}
{{- if and (not $isRouted) (has "/" $api) (not $ingest) -}}
{{- $ingest = list "/ingest/" -}}
{{- end -}}
{{- $basePath := (index . 0).Values.console.basePath -}}
{{- $parts := list -}}
{{- with $api }}{{ $parts = append $parts (dict "component" "api" "paths" (include "posthorn.below" (list $basePath .) | fromJsonArray)) }}{{ end -}}
{{- with $ingest }}{{ $parts = append $parts (dict "component" "ingest" "paths" (include "posthorn.below" (list $basePath .) | fromJsonArray)) }}{{ end -}}
{{- toJson $parts -}}
{{- end -}}
