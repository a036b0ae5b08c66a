{{- /* The image of manager, gateway and watchdogs. */ -}}
{{- define "tidewaiter.image" -}}
{{- .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- with .Values.image.digest }}@{{ . }}{{ end }}
{{- end }}
