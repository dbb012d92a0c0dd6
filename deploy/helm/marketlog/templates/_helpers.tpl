{{/* The name that all objects begin with: that of the release, with the chart's where it is not in it. */}}
{{- define "marketlog.name" -}}
{{- $name := .Release.Name -}}
{{- if not (contains .Chart.Name $name) }}{{ $name = printf "%s-%s" $name .Chart.Name }}{{ end -}}
{{- $name | trunc 48 | trimSuffix "-" -}}
{{- end }}

{{/* Labels by which pods are chosen; they never change. With (dict "root" $ "role" ROLE), or without a role all pods. */}}
{{- define "marketlog.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- with get . "role" }}
app.kubernetes.io/component: {{ . }}
{{- end }}
{{- end }}

{{- define "marketlog.labels" -}}
{{ include "marketlog.selector" . }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end }}

{{- define "marketlog.image" -}}
{{- $image := .Values.image -}}
{{- $repository := required "image.repository is empty: no image is published, so build deploy/Dockerfile and name where you pushed it" $image.repository -}}
{{- if $image.digest -}}
{{ $repository }}@{{ $image.digest }}
{{- else -}}
{{ $repository }}:{{ required "image.tag is empty: name the tag, or image.digest" $image.tag }}
{{- end -}}
{{- end }}

{{/* Refuses what the program would refuse after its start, where the remedy is in the values. Templates that look into config include it first. */}}
{{- define "marketlog.check" -}}
{{- if eq .Values.mode "split" -}}
  {{- range $key := list "kafka.brokers" "clickhouse.addr" "redis.addr" -}}
    {{- $value := $.Values.config -}}
    {{- range splitList "." $key }}{{ $value = (default dict $value | dig . "") }}{{ end -}}
    {{- if not $value }}{{ fail (printf "config.%s is empty: name the server, or use mode single" $key) }}{{ end -}}
  {{- end -}}
  {{- if not (hasKey .Values.secrets "auth.pepper_file") -}}
    {{- fail "secrets has no auth.pepper_file: name a Secret with the pepper of the API keys, 64 random hexadecimal digits, which all roles share" -}}
  {{- end -}}
{{- else if dig "kafka" "brokers" "" .Values.config -}}
  {{- fail "config.kafka.brokers names servers, and mode single has its own log: leave it out, or use mode split" -}}
{{- end -}}
{{- end }}

{{/* The data of the ConfigMap. */}}
{{- define "marketlog.files" -}}
marketlog.yaml: |
  {{- toYaml .Values.config | nindent 2 }}
{{- with .Values.plans }}
plans.yaml: |
  {{- . | trim | nindent 2 }}
{{- end }}
{{- end }}

{{/* The name of a volume, or of a folder, of a setting that names a file. */}}
{{- define "marketlog.slug" -}}
{{ . | replace "." "-" | replace "_" "-" }}
{{- end }}

{{/* Ports of addresses (a list, or one text with commas), as a list of ports of a NetworkPolicy. */}}
{{- define "marketlog.ports" -}}
{{- $ports := list -}}
{{- range . -}}
  {{- $list := . -}}
  {{- if kindIs "string" $list }}{{ $list = splitList "," $list }}{{ end -}}
  {{- range $list }}{{ $ports = append $ports (. | toString | trim | splitList ":" | last | int) }}{{ end -}}
{{- end -}}
{{- range $i, $port := $ports | uniq }}
{{- if $i }}{{ "\n" }}{{ end -}}
- {port: {{ $port }}, protocol: TCP}
{{- end }}
{{- end }}
