{{/*
The template of a role's pods. It takes root, role (what the program runs), files (the name of the ConfigMap), resources,
account (whether the pods have the chart's service account),
serves (whether REST is among what it serves), and claim (whether /data is a volume that stays).
*/}}
{{- define "marketlog.pod" -}}
{{- $values := .root.Values -}}
metadata:
  labels: {{- include "marketlog.labels" . | nindent 4 }}
  annotations:
    # Settings are read at the start, so pods are replaced when they change.
    checksum/config: {{ include "marketlog.files" .root | sha256sum }}
    {{- with $values.podAnnotations }}{{ toYaml . | nindent 4 }}{{ end }}
spec:
  {{- if get . "account" }}
  serviceAccountName: {{ include "marketlog.name" .root }}
  {{- end }}
  automountServiceAccountToken: false
  # The variables of a Service called marketlog would be MARKETLOG_PORT and the like, which are no settings.
  enableServiceLinks: false
  {{- with $values.imagePullSecrets }}
  imagePullSecrets: {{- toYaml . | nindent 4 }}
  {{- end }}
  # It drains within 8 seconds of SIGTERM, and closes its files.
  terminationGracePeriodSeconds: 30
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile: {type: RuntimeDefault}
  {{- $nodes := $values.nodeSelector }}
  {{- if eq .role "run" }}{{ $nodes = merge dict $values.nodeSelector $values.single.nodeSelector }}{{ end }}
  {{- with $nodes }}
  nodeSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if has .role (list "process" "query") }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels: {{- include "marketlog.selector" . | nindent 10 }}
  {{- end }}
  containers:
    - name: marketlog
      image: {{ include "marketlog.image" .root | quote }}
      imagePullPolicy: {{ $values.image.pullPolicy }}
      args: [{{ .role }}]
      env:
        - {name: MARKETLOG_CONFIG, value: /etc/marketlog/files/marketlog.yaml}
        # A folder that the program makes is readable by nobody else.
        - {name: MARKETLOG_DATA_DIR, value: /data/marketlog}
        - {name: MARKETLOG_METRICS_LISTEN, value: "0.0.0.0:9100"}
        {{- if get . "serves" }}
        - {name: MARKETLOG_LISTEN, value: "0.0.0.0:8080"}
        {{- end }}
        {{- if ne .role "run" }}
        - {name: MARKETLOG_SQL_LISTEN, value: ""}
        {{- end }}
        {{- if $values.plans }}
        - {name: MARKETLOG_PLANS_FILE, value: /etc/marketlog/files/plans.yaml}
        {{- end }}
        {{- range $setting, $secret := $values.secrets }}
        - {name: MARKETLOG_{{ $setting | replace "." "_" | replace "-" "_" | upper }}, value: /etc/marketlog/{{ include "marketlog.slug" $setting }}/{{ $secret.key }}}
        {{- end }}
      {{- if ne .role "migrate" }}
      ports:
        - {name: metrics, containerPort: 9100}
        {{- if get . "serves" }}
        - {name: api, containerPort: 8080}
        {{- end }}
      # Answers as soon as the process runs, which after a kill waits up to ten seconds for what the one before held.
      livenessProbe:
        httpGet: {path: /healthz, port: metrics}
        initialDelaySeconds: 15
        periodSeconds: 10
        timeoutSeconds: 3
        failureThreshold: 3
      readinessProbe:
        httpGet: {path: /readyz, port: metrics}
        periodSeconds: 5
        timeoutSeconds: 3
      {{- end }}
      {{- if get . "serves" }}
      # Until nobody is sent here any more.
      lifecycle: {preStop: {sleep: {seconds: 5}}}
      {{- end }}
      resources: {{- toYaml .resources | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: {drop: [ALL]}
      volumeMounts:
        - {name: data, mountPath: /data}
        - {name: tmp, mountPath: /tmp}
        - {name: files, mountPath: /etc/marketlog/files, readOnly: true}
        {{- range $setting, $secret := $values.secrets }}
        - {name: {{ include "marketlog.slug" $setting }}, mountPath: /etc/marketlog/{{ include "marketlog.slug" $setting }}, readOnly: true}
        {{- end }}
  volumes:
    {{- if not (get . "claim") }}
    # Holds bookkeeping only, which is made again.
    - {name: data, emptyDir: {}}
    {{- end }}
    - {name: tmp, emptyDir: {}}
    - {name: files, configMap: {name: {{ .files }}}}
    {{- range $setting, $secret := $values.secrets }}
    - name: {{ include "marketlog.slug" $setting }}
      secret: {secretName: {{ $secret.name }}, defaultMode: 0440, items: [{key: {{ $secret.key }}, path: {{ $secret.key }}}]}
    {{- end }}
{{- end }}

{{/* The claim of a role whose /data is on a volume. */}}
{{- define "marketlog.claim" -}}
- metadata: {name: data}
  spec:
    accessModes: [ReadWriteOnce]
    {{- with .className }}
    storageClassName: {{ . }}
    {{- end }}
    resources: {requests: {storage: {{ .size }}}}
{{- end }}
