{{- define "goodput.name" -}}
{{- if contains "goodput" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-goodput" (.Release.Name | trunc 42 | trimSuffix "-") }}{{ end }}
{{- end }}

{{- define "goodput.account" -}}
{{- .Values.serviceAccount.name | default (include "goodput.name" .) }}
{{- end }}

{{- define "goodput.selector" -}}
app.kubernetes.io/name: goodput-operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "goodput.labels" -}}
{{ include "goodput.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: goodput
{{- end }}

{{- define "goodput.image" -}}
{{- if .Values.image.digest }}{{ .Values.image.repository }}@{{ .Values.image.digest }}{{ else }}{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{/* What the operator may do in the namespaces that it watches. Of Secrets it sees nothing. */}}
{{- define "goodput.rules" -}}
- apiGroups: [goodput.dev]
  resources: [benchmarksweeps]
  verbs: [get, list, watch, patch]
- apiGroups: [goodput.dev]
  resources: [benchmarksweeps/status]
  verbs: [patch]
- apiGroups: [goodput.dev]
  resources: [benchmarksweeps/finalizers] # to own objects that block their owner's deletion
  verbs: [update]
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch]
- apiGroups: [""]
  resources: [pods/log]
  verbs: [get]
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, list, watch, create, patch, delete, deletecollection]
- apiGroups: [""]
  resources: [events]
  verbs: [list, create]
- apiGroups: [apps]
  resources: [deployments]
  verbs: [get, list, watch, create, delete]
- apiGroups: [batch]
  resources: [jobs]
  verbs: [get, list, watch, create, patch, delete]
{{- end }}
