// Package helm holds the chart in marketlog, which installs the program on Kubernetes, to what the program is: its settings and its roles. The
// tests read the manifests in testdata, which are what Helm makes of the values beside them: tools/helm writes and compares them.
package helm

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/marketlog/marketlog/deploy/config"
)

var update = flag.Bool("update", false, "write what values.schema.json has of the program's settings anew")

// Settings that the chart sets itself.
var ownSettings = []string{"data_dir", "listen", "metrics_listen", "sql_listen", "plans.file"}

// isFile reports whether a setting names a file, which a Secret holds.
func isFile(key string) bool {
	return strings.HasSuffix(key, "_file") || key == "tls.cert" || key == "tls.key"
}

// fileSettings are those that name a file.
func fileSettings(t *testing.T) (keys []any) {
	t.Helper()
	_, settings, err := config.LoadConfig(config.Sources{})
	if err != nil {
		t.Fatal(err)
	}
	for _, setting := range settings {
		if isFile(setting.Key) {
			keys = append(keys, setting.Key)
		}
	}
	return keys
}

// schemaOf is the JSON schema of a part of the configuration file; nil where the chart sets it, or where a Secret holds it.
func schemaOf(value reflect.Value, key string) map[string]any {
	if slices.Contains(ownSettings, key) || isFile(key) {
		return nil
	}
	if value.Type() == reflect.TypeFor[time.Duration]() {
		return map[string]any{"type": "string"}
	}
	switch value.Kind() {
	case reflect.Struct:
		properties := map[string]any{}
		for i := range value.NumField() {
			name := value.Type().Field(i).Tag.Get("koanf")
			if schema := schemaOf(value.Field(i), strings.TrimPrefix(key+"."+name, ".")); schema != nil {
				properties[name] = schema
			}
		}
		if len(properties) == 0 {
			return nil
		}
		return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	case reflect.Map:
		var names []any
		for _, name := range slices.SortedFunc(slices.Values(value.MapKeys()), func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) }) {
			names = append(names, name.String())
		}
		element := schemaOf(reflect.Zero(value.Type().Elem()), key+".NAME")
		return map[string]any{"type": "object", "propertyNames": map[string]any{"enum": names}, "additionalProperties": element}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": map[string]any{"type": "string"}}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return map[string]any{"type": "integer"}
	default:
		if strings.HasSuffix(key, ".enabled") { // auto, true or false, which YAML reads as a boolean
			return map[string]any{"type": []any{"string", "boolean"}}
		}
		return map[string]any{"type": "string"}
	}
}

// What values.schema.json allows under `config` and `secrets` are the program's settings, each in one of them.
func TestSchemaHasTheSettings(t *testing.T) {
	const path = "marketlog/values.schema.json"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	parts := schema["$defs"].(map[string]any)
	want := map[string]any{
		"config":       schemaOf(reflect.ValueOf(config.DefaultConfig()), ""),
		"fileSettings": map[string]any{"enum": fileSettings(t)},
	}
	if *update {
		maps.Copy(parts, want)
		text, err := json.MarshalIndent(schema, "", " ")
		if err == nil {
			err = os.WriteFile(path, append(text, '\n'), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, part := range want {
		if diff := cmp.Diff(part, parts[name]); diff != "" {
			t.Errorf("run `go test ./deploy/helm -args -update`: %s is not what the program has (-want +got):\n%s", name, diff)
		}
	}
}

// manifest is as much of a manifest as is looked at.
type manifest struct {
	Kind     string
	Metadata struct{ Name string }
	Data     map[string]string
	Spec     struct {
		Template struct {
			Spec podSpec
		}
		VolumeClaimTemplates []struct{ Metadata struct{ Name string } } `yaml:"volumeClaimTemplates"`
	}
}

type podSpec struct {
	EnableServiceLinks           *bool `yaml:"enableServiceLinks"`
	AutomountServiceAccountToken *bool `yaml:"automountServiceAccountToken"`
	SecurityContext              struct {
		RunAsNonRoot bool `yaml:"runAsNonRoot"`
	} `yaml:"securityContext"`
	Containers []struct {
		Args            []string
		Env             []struct{ Name, Value string }
		Resources       struct{ Limits map[string]string }
		SecurityContext struct {
			AllowPrivilegeEscalation *bool `yaml:"allowPrivilegeEscalation"`
			ReadOnlyRootFilesystem   bool  `yaml:"readOnlyRootFilesystem"`
			Capabilities             struct{ Drop []string }
		} `yaml:"securityContext"`
		VolumeMounts []struct {
			Name      string
			MountPath string `yaml:"mountPath"`
		} `yaml:"volumeMounts"`
	}
	Volumes []struct {
		Name      string
		EmptyDir  *struct{}              `yaml:"emptyDir"`
		ConfigMap *struct{ Name string } `yaml:"configMap"`
		Secret    *struct {
			SecretName string `yaml:"secretName"`
			Items      []struct{ Key, Path string }
		}
	}
}

// manifests are those of a file of testdata.
func manifests(t *testing.T, name string) (list []manifest) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for documents := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var m manifest
		switch err := documents.Decode(&m); {
		case err == io.EOF:
			return list
		case err != nil:
			t.Fatalf("%s: %v", name, err)
		case m.Kind != "":
			list = append(list, m)
		}
	}
}

// workloads are the manifests that have pods, by what their pods run.
func workloads(list []manifest) map[string]manifest {
	found := map[string]manifest{}
	for _, m := range list {
		if pod := m.Spec.Template.Spec; len(pod.Containers) > 0 {
			found[strings.Join(pod.Containers[0].Args, " ")] = m
		}
	}
	return found
}

// examples are the files of testdata, with what their pods run.
var examples = map[string][]string{
	"single":     {"run"},
	"split":      {"migrate", "process", "produce", "query"},
	"production": {"migrate", "process", "produce", "query"},
}

// Each pod is configured as its role will read it: by the program's own loader, from the variables and files of the pod. An
// unknown name, a wrong value or a file that is not mounted fails.
func TestPodsAreConfiguredAsTheyExpect(t *testing.T) {
	for name, roles := range examples {
		list := manifests(t, name)
		pods := workloads(list)
		if got := slices.Sorted(maps.Keys(pods)); !slices.Equal(got, roles) {
			t.Fatalf("%s runs %v, want %v", name, got, roles)
		}
		for role, workload := range pods {
			t.Run(name+" "+role, func(t *testing.T) {
				cfg, settings := load(t, list, workload)
				if role == "migrate" { // needs what process does
					role = "process"
				}
				if err := cfg.ValidateFor(role); err != nil {
					t.Error(err)
				}
				compareWithValues(t, name, settings)
			})
		}
	}
}

// load reads the configuration of a pod, whose volumes are laid out in a folder.
func load(t *testing.T, list []manifest, workload manifest) (config.Config, []config.Setting) {
	t.Helper()
	pod := workload.Spec.Template.Spec
	container := pod.Containers[0]
	root := t.TempDir()
	write := func(path, content string) {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	at := map[string]string{}
	for _, mount := range container.VolumeMounts {
		at[mount.Name] = filepath.Join(root, mount.MountPath)
	}
	claimed := map[string]bool{}
	for _, claim := range workload.Spec.VolumeClaimTemplates {
		claimed[claim.Metadata.Name] = true
	}
	for _, volume := range pod.Volumes {
		claimed[volume.Name] = true
		folder, mounted := at[volume.Name]
		switch {
		case !mounted:
			t.Errorf("the volume %s is mounted nowhere", volume.Name)
		case volume.ConfigMap != nil:
			i := slices.IndexFunc(list, func(m manifest) bool { return m.Kind == "ConfigMap" && m.Metadata.Name == volume.ConfigMap.Name })
			if i < 0 {
				t.Fatalf("there is no ConfigMap %s", volume.ConfigMap.Name)
			}
			for file, content := range list[i].Data {
				write(filepath.Join(folder, file), content)
			}
		case volume.Secret != nil:
			for _, item := range volume.Secret.Items {
				write(filepath.Join(folder, item.Path), "secret")
			}
		}
	}
	for name := range at {
		if !claimed[name] {
			t.Errorf("%s is mounted and no volume", name)
		}
	}
	var env []string
	for _, variable := range container.Env {
		value := variable.Value
		if strings.HasPrefix(value, "/etc/") {
			value = filepath.Join(root, value)
			if _, err := os.Stat(value); err != nil {
				t.Errorf("%s names a file that is not mounted: %v", variable.Name, err)
			}
		}
		env = append(env, variable.Name+"="+value)
	}
	cfg, settings, err := config.LoadConfig(config.Sources{Env: env})
	if err != nil {
		t.Error(err)
	}
	return cfg, settings
}

// compareWithValues holds the settings that a pod read to those of its values.
func compareWithValues(t *testing.T, name string, settings []config.Setting) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var values struct{ Config map[string]any }
	if err := yaml.Unmarshal(text, &values); err != nil {
		t.Fatal(err)
	}
	got := map[string]any{}
	for _, setting := range settings {
		if strings.HasPrefix(setting.Origin, "file ") {
			got[setting.Key] = setting.Value
		}
	}
	want := map[string]any{}
	flatten(values.Config, "", want)
	if _, named := want["feeds"]; !named {
		want["feeds"] = "live" // by values.yaml
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings (-values +read):\n%s", diff)
	}
}

// flatten joins the names of nested settings by dots.
func flatten(from map[string]any, prefix string, into map[string]any) {
	for name, value := range from {
		if inner, ok := value.(map[string]any); ok {
			flatten(inner, prefix+name+".", into)
			continue
		}
		into[prefix+name] = value
	}
}

// No pod has rights, a token or variables that it has no use for, and none takes all of a node.
func TestPodsAreConfined(t *testing.T) {
	for name := range examples {
		for role, workload := range workloads(manifests(t, name)) {
			pod := workload.Spec.Template.Spec
			container := pod.Containers[0]
			confined := container.SecurityContext
			if !pod.SecurityContext.RunAsNonRoot || !confined.ReadOnlyRootFilesystem || !slices.Equal(confined.Capabilities.Drop, []string{"ALL"}) ||
				confined.AllowPrivilegeEscalation == nil || *confined.AllowPrivilegeEscalation {
				t.Errorf("%s: %s may do too much: %+v %+v", name, role, pod.SecurityContext, confined)
			}
			if container.Resources.Limits["memory"] == "" || container.Resources.Limits["cpu"] == "" {
				t.Errorf("%s: %s has no limits: %v", name, role, container.Resources.Limits)
			}
			if pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken {
				t.Errorf("%s: %s has a token of the cluster", name, role)
			}
			// Kubernetes would set MARKETLOG_PORT for a Service of that name, which the program takes for a setting with a wrong name.
			if pod.EnableServiceLinks == nil || *pod.EnableServiceLinks {
				t.Errorf("%s: %s gets variables of services", name, role)
			}
			for _, variable := range container.Env {
				if strings.Contains(variable.Name, "PASSWORD") && !strings.HasSuffix(variable.Name, "_FILE") {
					t.Errorf("%s: %s of %s is a secret in the environment", name, variable.Name, role)
				}
			}
		}
	}
}
